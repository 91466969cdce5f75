"""F57 with real workers: a message comes again while it is worked on, and a worker is stopped with messages in hand."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from homing.broker import CeleryBroker
from jobs.broker import RELAY
from jobs.core.events import EventType
from jobs.storage.database import Database
from jobs.storage.outbox import append_event
from jobs.storage.schema import handler_runs
from tests.e2e.test_sweeping import Pair
from tests.services.redis import RedisService
from tests.services.waiting import wait_until

_HERE = Path(__file__).parent
_SLOW_S = 9.0
_QUEUES = "events,handlers,reconcile"


class Workers(Pair):
    """Two workers and beat."""

    def start(self, name: str, *arguments: str) -> None:
        command = [sys.executable, "-m", "celery", "-A", "tests.e2e.impatient_app:app", *arguments]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, env=dict(self.environment), cwd=self.folder
            )

    def announce(self, count: int) -> list[str]:
        data = {"webhook": {"provider": "test"}}
        with self.database.write() as tx:
            ids = [append_event(tx, EventType.WEBHOOK_RECEIVED, tenant=None, data=data) for _ in range(count)]
        CeleryBroker(self.redis.url).publish(RELAY)
        return ids

    def lines(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text().split() if path.exists() else []

    def unfinished(self) -> int:
        with self.database.read() as tx:
            statement = sa.select(sa.func.count()).where(handler_runs.c.done_at.is_(None))
            return int(tx.execute(statement).scalar_one())


@pytest.fixture
def workers(tmp_path: Path, sqlite_url: str) -> Iterator[Workers]:
    redis = RedisService.start_in(tmp_path / "redis")
    (tmp_path / "homing.toml").write_text('[plugins]\nmodules = ["slow_plugin"]\n')
    environment = {
        **os.environ,
        "HOMING_DATA_DIR": str(tmp_path),
        "HOMING_DATABASE_URL": sqlite_url,
        "HOMING_REDIS_URL": redis.url,
        "PYTHONPATH": os.pathsep.join([str(_HERE), str(_HERE.parents[1])]),
        "STARTS": str(tmp_path / "starts"),
        "TOLD": str(tmp_path / "told"),
        "SLOW_S": str(_SLOW_S),
    }
    pair = Workers(tmp_path, redis, Database.connect(sqlite_url), environment)
    for name in ("one", "two"):
        pair.start(name, "worker", "-n", f"{name}@test", "-c", "3", "--without-mingle", "-Q", _QUEUES)
    pair.start("beat", "beat", "--pidfile=")
    yield pair
    pair.stop()


@pytest.mark.timeout(240)
def test_a_message_that_comes_again_finds_the_lease_and_a_stopped_worker_loses_nothing(workers: Workers) -> None:
    """F57 (b), (c): each effect once, though every message comes again after five seconds; ten in hand, none lost."""
    events = workers.announce(10)
    wait_until(lambda: len(workers.lines("starts")) >= 2, within_s=60, what="the first starts", every_s=0.2)

    workers.processes["one"].send_signal(signal.SIGTERM)

    try:
        wait_until(lambda: len(set(workers.lines("told"))) == 10, within_s=150, what="all ten", every_s=0.2)
        wait_until(lambda: workers.unfinished() == 0, within_s=30, what="their marks", every_s=0.2)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{workers.lines('starts')}\n{workers.logs()}") from None
    assert Counter(workers.lines("told")) == Counter(events)
    assert Counter(workers.lines("starts")) == Counter(events)
