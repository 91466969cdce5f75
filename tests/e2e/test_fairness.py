"""One provider hangs with a thousand polls due; another's single one begins within seconds, in a real worker."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from jobs.broker import EVENT_QUEUES, IO_QUEUES
from jobs.clock import SystemClock
from jobs.storage.database import Database
from jobs.storage.schema import jobs
from tests.factories import new_job
from tests.fakes.raw_server import RawServer, ok, says
from tests.services.redis import RedisService
from tests.services.waiting import wait_until

_CELERY = [sys.executable, "-m", "celery", "-A", "homing.worker:app"]
_PREFORK = ["worker", "--pool", "prefork", "--prefetch-multiplier", "1", "--without-mingle", "--without-gossip"]


class Hanging:
    """Takes every connection and says nothing."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                self.open.append(self._listener.accept()[0])
            except OSError:
                return

    def close(self) -> None:
        self._listener.close()
        for connection in self.open:
            connection.close()


def _entry(name: str, url: str) -> str:
    return f'[providers.{name}]\nadapter = "simulator"\nbase_url = "{url}"\nwebhook_scheme = "none"\n'


def _worker(folder: Path, environment: dict[str, str], name: str, *arguments: str) -> subprocess.Popen[bytes]:
    with (folder / f"{name}.log").open("ab") as log:
        return subprocess.Popen(
            [*_CELERY, *arguments], stdout=log, stderr=subprocess.STDOUT, env=environment, cwd=folder
        )


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    server = Hanging()
    yield server
    server.close()


@pytest.fixture
def calm() -> Iterator[RawServer]:
    server = RawServer(says(ok(b'{"id": "p-calm", "status": "processing"}')))
    yield server
    server.close()


@pytest.mark.timeout(180)
def test_a_provider_that_hangs_leaves_places_to_the_others(
    tmp_path: Path, sqlite_url: str, hanging: Hanging, calm: RawServer
) -> None:
    """F50: of a thousand polls of the one, few are under way; the other's is answered within 5 s of being due."""
    redis = RedisService.start_in(tmp_path / "redis")
    (tmp_path / "homing.toml").write_text(_entry("stuck", hanging.url) + _entry("calm", calm.url))
    environment = {
        **os.environ,
        "HOMING_DATA_DIR": str(tmp_path),
        "HOMING_DATABASE_URL": sqlite_url,
        "HOMING_REDIS_URL": redis.url,
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    database = Database.connect(sqlite_url)
    for number in range(1000):
        _running(database, "stuck", f"p-{number}")
    with ExitStack() as stack:
        stack.callback(database.close)
        stack.callback(redis.kill)
        io = ["-c", "8", "-n", "io@%h", "-Q", ",".join(IO_QUEUES)]
        events = ["-c", "2", "-n", "events@%h", "-Q", ",".join(EVENT_QUEUES)]
        for name, arguments in (("io", [*_PREFORK, *io]), ("events", [*_PREFORK, *events]), ("beat", ["beat"])):
            process = _worker(tmp_path, environment, name, *arguments)
            stack.callback(process.wait)
            stack.callback(process.kill)
        wait_until(lambda: len(hanging.open) >= 6, within_s=90, what="the places taken by calls that hang")
        assert len(hanging.open) == 6

        due_at = SystemClock().now()
        job_id = _running(database, "calm", "p-calm")
        wait_until(lambda: _polled_at(database, job_id) is not None, within_s=20, what="the other's poll", every_s=0.1)

        assert _polled_at(database, job_id) - due_at < timedelta(seconds=5)


def _running(database: Database, provider: str, run: str) -> str:
    now = SystemClock().now()
    due: dict[str, Any] = {"next_submit_at": None, "next_poll_at": now, "deadline_at": now + timedelta(hours=1)}
    return str(new_job(database, provider=provider, provider_job_id=run, created_at=now, **due)["id"])


def _polled_at(database: Database, job_id: str) -> Any:
    with database.read() as tx:
        return tx.execute(jobs.select().where(jobs.c.id == job_id)).mappings().one()["polled_at"]
