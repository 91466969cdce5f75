"""F55 with real processes: a pool child that is stopped while its worker, its port and its pid stay fine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest
import sqlalchemy as sa

from homing.stopped.watch import is_stopped
from jobs.clock import SystemClock
from jobs.storage.database import Database
from jobs.storage.schema import job_attempts, job_transitions, jobs, outbox
from tests.e2e.test_sweeping import Pair
from tests.factories import new_job
from tests.services.redis import RedisService
from tests.services.waiting import wait_until

_WORKER = ["worker", "-c", "3", "--without-mingle", "--without-gossip", "-Q"]
_QUEUES = "events,reconcile,submit,poll"
_BEATS = {f"queue.{queue}" for queue in _QUEUES.split(",")}


class Provider:
    """Speaks the simulator's dialect: a key begins one run, and the first submit's answer waits until it is let go."""

    def __init__(self) -> None:
        self.submits: Counter[str] = Counter()
        self.first_is_here, self.let_go = threading.Event(), threading.Event()
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                provider.submits[self.headers["Idempotency-Key"]] += 1
                if not provider.first_is_here.is_set():
                    provider.first_is_here.set()
                    provider.let_go.wait(120)
                self._say({"id": "p-1", "status": "queued"}, 201)

            def do_GET(self) -> None:
                self._say({"id": "p-1", "status": "succeeded", "progress": 1, "output": {"text": "done"}}, 200)

            def _say(self, body: dict[str, Any], status: int) -> None:
                raw = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_: Any) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def close(self) -> None:
        self.let_go.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def provider() -> Iterator[Provider]:
    made = Provider()
    yield made
    made.close()


class Fleet(Pair):
    """Beat and a worker of three children."""

    def start_worker(self, *, patience_s: float) -> None:
        """With this patience for a child that is stopped."""
        command = [sys.executable, "-m", "celery", "-A", "tests.e2e.watchful_app:app", *_WORKER, _QUEUES]
        environment = {**self.environment, "TEST_PATIENCE_S": str(patience_s)}
        with (self.folder / "worker.log").open("ab") as log:
            self.processes["worker"] = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, env=environment, cwd=self.folder
            )

    @property
    def children(self) -> list[int]:
        return [child.pid for child in psutil.Process(self.processes["worker"].pid).children()]

    def caller_of(self, port: int) -> int:
        """The child that holds a connection to this port."""

        def calls(pid: int) -> bool:
            return any(tuple(one.raddr)[1:] == (port,) for one in psutil.Process(pid).net_connections("tcp"))

        (found,) = [pid for pid in self.children if calls(pid)]
        return found

    def job(self, job_id: str) -> dict[str, Any]:
        with self.database.read() as tx:
            return tx.row(sa.select(jobs).where(jobs.c.id == job_id)) or {}

    def story(self, job_id: str) -> list[Any]:
        """All that has become of a job. (What was heard and not applied is kept as well, beside it.)"""
        applied = sa.select(job_transitions).where(job_transitions.c.job_id == job_id, job_transitions.c.applied)
        with self.database.read() as tx:
            told = (tx.rows(sa.select(table).where(table.c.job_id == job_id)) for table in (job_attempts, outbox))
            return [self.job(job_id), tx.rows(applied), *told]

    def is_told(self, job_id: str) -> bool:
        """Whether every event of it has been relayed."""
        waiting = sa.select(outbox.c.id).where(outbox.c.job_id == job_id, outbox.c.relayed_at.is_(None))
        with self.database.read() as tx:
            return not tx.rows(waiting)

    def log(self) -> str:
        return (self.folder / "worker.log").read_text(errors="replace")


@pytest.fixture
def fleet(tmp_path: Path, sqlite_url: str, provider: Provider) -> Iterator[Fleet]:
    redis = RedisService.start_in(tmp_path / "redis")
    (tmp_path / "homing.toml").write_text(
        '[providers.renders]\nadapter = "simulator"\nwebhook_scheme = "none"\nfinish = "on_outcome"\n'
        f'idempotency = "replay"\nbase_url = "http://127.0.0.1:{provider.port}"\n'
    )
    environment = {
        **os.environ,
        "HOMING_DATA_DIR": str(tmp_path),
        "HOMING_DATABASE_URL": sqlite_url,
        "HOMING_REDIS_URL": redis.url,
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    pair = Fleet(tmp_path, redis, Database.connect(sqlite_url), environment)
    pair.start("beat", "beat", "--pidfile=")
    yield pair
    for pid in pair.children if "worker" in pair.processes else ():
        os.kill(pid, signal.SIGCONT)
    pair.stop()


@pytest.mark.timeout(180)
def test_what_a_stopped_child_held_comes_home_and_its_late_word_changes_nothing(
    fleet: Fleet, provider: Provider
) -> None:
    """F55: the worker answers and takes up its work unaided; the child, let go on, finds that it is Stale."""
    fleet.start_worker(patience_s=120)
    now = SystemClock().now()
    job_id = str(new_job(fleet.database, next_submit_at=now, created_at=now)["id"])
    assert provider.first_is_here.wait(60), fleet.logs()
    child = fleet.caller_of(provider.port)

    os.kill(child, signal.SIGSTOP)
    provider.let_go.set()  # its answer is there, and nobody takes it
    try:
        wait_until(lambda: fleet.job(job_id)["state"] == "succeeded", within_s=40, what="the job", every_s=0.1)
        wait_until(lambda: fleet.is_told(job_id), within_s=20, what="its events", every_s=0.1)
        wait_until(lambda: fleet.heard() >= _BEATS, within_s=30, what="the heartbeats", every_s=0.2)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{fleet.logs()}") from None
    assert is_stopped(child)
    assert list(provider.submits.values()) == [2]  # the same key: one run
    assert "process is stopped" in fleet.log()

    before = fleet.story(job_id)
    os.kill(child, signal.SIGCONT)
    wait_until(lambda: fleet.log().count("p-1") >= 2, within_s=20, what="the late word")
    assert fleet.story(job_id) == before


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="elsewhere a breakpoint looks like a stop, and nobody is judged"
)
@pytest.mark.timeout(120)
def test_an_idle_child_that_stays_stopped_gives_way_to_another(fleet: Fleet) -> None:
    """F55: no task of it runs out of time, canaries go round it, and a message it was handed nobody would ever see."""
    fleet.start_worker(patience_s=2)
    wait_until(lambda: fleet.heard() >= _BEATS, within_s=60, what="the heartbeats", every_s=0.2)
    stopped = fleet.children[-1]

    os.kill(stopped, signal.SIGSTOP)
    wait_until(
        lambda: stopped not in fleet.children and len(fleet.children) == 3,
        within_s=30,
        what="another child",
        every_s=0.1,
    )

    assert fleet.processes["worker"].poll() is None
    assert "process stayed stopped and is killed" in fleet.log()
