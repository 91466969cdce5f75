"""Beat and a worker as real processes: everything that should work says so, and takes up its work again unaided."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from homing.broker import CeleryBroker
from jobs.broker import EVENT_QUEUES, IO_QUEUES, RELAY
from jobs.core.events import EventType
from jobs.storage.database import Database
from jobs.storage.outbox import append_event
from reconciler.heartbeats import list_heartbeats
from reconciler.schedule import expected_heartbeats
from tests.services.redis import RedisService
from tests.services.waiting import wait_until

_HERE = Path(__file__).parent
_CELERY = [sys.executable, "-m", "celery", "-A", "homing.worker:app"]
_WORKER = ["worker", "-c", "2", "--without-mingle", "--without-gossip", "-Q", ",".join((*EVENT_QUEUES, *IO_QUEUES))]


@dataclass
class Pair:
    """Beat and a worker, over a Redis and a database of their own."""

    folder: Path
    redis: RedisService
    database: Database
    environment: Mapping[str, str]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, *arguments: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [*_CELERY, *arguments],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=dict(self.environment),
                cwd=self.folder,
            )

    def stop(self) -> None:
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.redis.kill()
        self.database.close()

    def heard(self) -> set[str]:
        """What has worked within its time."""
        with self.database.read() as tx:
            now = tx.now
            return {
                beat.name
                for beat in list_heartbeats(tx)
                if now - beat.beat_at <= 2 * beat.period + timedelta(seconds=1)
            }

    def logs(self) -> str:
        return "\n".join(path.read_text(errors="replace")[-3000:] for path in self.folder.glob("*.log"))


@pytest.fixture
def pair(tmp_path: Path, sqlite_url: str) -> Iterator[Pair]:
    redis = RedisService.start_in(tmp_path / "redis")
    (tmp_path / "homing.toml").write_text('[plugins]\nmodules = ["reconciling_plugin"]\n')
    environment = {
        **os.environ,
        "HOMING_DATA_DIR": str(tmp_path),
        "HOMING_DATABASE_URL": sqlite_url,
        "HOMING_REDIS_URL": redis.url,
        "PYTHONPATH": os.pathsep.join([str(_HERE), str(_HERE.parents[1])]),
        "TOLD": str(tmp_path / "told"),
    }
    database = Database.connect(sqlite_url)
    with database.write() as tx:
        tx.execute(sa.text("CREATE TABLE effects (event_id TEXT)"))
    pair = Pair(tmp_path, redis, database, environment)
    pair.start("worker", *_WORKER)
    pair.start("beat", "beat", "--pidfile=")
    yield pair
    pair.stop()


def effects(pair: Pair) -> list[str]:
    with pair.database.read() as tx:
        return [row["event_id"] for row in tx.rows(sa.text("SELECT event_id FROM effects"))]


def test_a_fleet_at_work_is_heard_of_and_comes_back_by_itself_when_redis_does(pair: Pair) -> None:
    """F55: every heartbeat travels through its queue and is written by finished work."""
    everything = set(expected_heartbeats())
    wait_until(lambda: pair.heard() == everything, within_s=45, what="all heartbeats", every_s=0.2)

    pair.redis.kill()
    wait_until(lambda: "sweep.polls" not in pair.heard(), within_s=20, what="the silence")
    pair.redis.start()

    wait_until(lambda: "sweep.polls" in pair.heard(), within_s=30, what="sweeps after Redis is back")
    assert {name: process.poll() for name, process in pair.processes.items()} == {"worker": None, "beat": None}


def test_an_event_reaches_handlers_of_both_kinds_with_and_without_its_bell(pair: Pair) -> None:
    broker = CeleryBroker(pair.redis.url)

    def announce() -> str:
        with pair.database.write() as tx:
            return append_event(tx, EventType.HEARTBEAT_RECOVERED, tenant=None, data={"heartbeat": {"name": "test"}})

    told = pair.folder / "told"
    rung = announce()
    broker.publish(RELAY)
    wait_until(lambda: rung in effects(pair) and rung in _read(told), within_s=30, what="the event with its bell")
    silent = announce()
    wait_until(lambda: silent in effects(pair) and silent in _read(told), within_s=30, what="the event without it")

    assert sorted(effects(pair)) == sorted([rung, silent])
    assert sorted(line.split()[1] for line in _read(told).splitlines()) == sorted([rung, silent])
    broker.close()


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""
