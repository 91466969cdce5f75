"""Deliveries by real processes that die at the worst moment: every event arrives, under one id, as the same bytes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
import sqlalchemy as sa
from standardwebhooks.webhooks import Webhook

from homing.broker import CeleryBroker
from jobs.broker import EVENT_QUEUES, IO_QUEUES, RELAY
from jobs.core.events import EventType
from jobs.net.guard import Guard
from jobs.services.job_events import append_job_event
from jobs.services.keys import Principal, Role
from jobs.services.runtime import Runtime
from jobs.storage.database import Database
from jobs.storage.schema import outbox
from tests.e2e.receiving import Endpoint, an_endpoint
from tests.factories import insert_test_job
from tests.fakes.runtime import a_runtime
from tests.services.redis import RedisService
from tests.services.waiting import wait_until
from webhooks.outgoing.endpoints import NewEndpoint, create_endpoint
from webhooks.outgoing.schema import deliveries, delivery_attempts

SECRET_KEY = "a-key-of-these-tests-longer-than-32-characters"
TENANT = "acme"
_HERE = Path(__file__).parent
_CELERY = [sys.executable, "-m", "celery", "-A", "homing.worker:app"]
_WORKER = ["worker", "-c", "3", "--without-mingle", "--without-gossip", "-Q", ",".join((*EVENT_QUEUES, *IO_QUEUES))]
#: A lease of a delivery, the queue behind it, and a loaded machine.
_HOME_WITHIN_S = 150


@dataclass
class Fleet:
    """Beat and a worker over a database and a Redis of their own; the worker may be killed, with all its children."""

    folder: Path
    runtime: Runtime
    environment: Mapping[str, str]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def database(self) -> Database:
        return self.runtime.database

    def start(self, name: str, *arguments: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [*_CELERY, *arguments], stdout=log, stderr=log, env=dict(self.environment), cwd=self.folder
            )

    def start_worker(self) -> None:
        self.start("worker", *_WORKER)

    def kill_worker(self) -> None:
        """As the machine would: main process and children, at once and without a goodbye."""
        main = psutil.Process(self.processes["worker"].pid)
        family = [main, *main.children(recursive=True)]
        for process in family:
            process.send_signal(signal.SIGKILL)
        psutil.wait_procs(family, timeout=10)
        self.processes["worker"].wait()

    def stop(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                for child in psutil.Process(process.pid).children(recursive=True):
                    child.kill()
                process.kill()
            process.wait()

    def endpoint(self, receiver: Endpoint) -> str:
        """Registers a receiver; returns its secret."""
        operator = Principal(TENANT, Role.OPERATOR, "key_1")
        made = create_endpoint(self.runtime, operator, NewEndpoint(receiver.url, ("job.*",), rate_per_s=100.0))
        return str(made["secret"])

    def events(self, count: int) -> list[str]:
        """Something happens to so many jobs."""
        with self.database.write() as tx:
            return [
                append_job_event(tx, EventType.JOB_SUCCEEDED, insert_test_job(tx, tenant=TENANT, event_count=1))
                for _ in range(count)
            ]

    def ring(self) -> None:
        self.runtime.broker.publish(RELAY)

    def rows(self, table: sa.Table) -> list[dict[str, Any]]:
        with self.database.read() as tx:
            return tx.rows(sa.select(table))

    def are_done(self, count: int) -> bool:
        rows = self.rows(deliveries)
        return len(rows) == count and all(row["state"] == "succeeded" for row in rows)


@pytest.fixture
def fleet(tmp_path: Path, sqlite_url: str) -> Iterator[Fleet]:
    with ExitStack() as stack:
        redis = RedisService.start_in(tmp_path / "redis")
        stack.callback(redis.kill)
        settings = {
            "HOMING_DATA_DIR": str(tmp_path),
            "HOMING_DATABASE_URL": sqlite_url,
            "HOMING_REDIS_URL": redis.url,
            "HOMING_SECRET_KEY": SECRET_KEY,
            "HOMING_ALLOW_PRIVATE_ADDRESSES": "true",
        }
        (tmp_path / "homing.toml").write_text('[plugins]\nmodules = ["delivering_plugin"]\n')
        paths = os.pathsep.join([str(_HERE), str(_HERE.parents[1])])
        database = Database.connect(sqlite_url)
        stack.callback(database.close)
        broker = CeleryBroker(redis.url)
        stack.callback(broker.close)
        runtime = a_runtime(database, broker=broker, environ=settings)
        runtime.guard = Guard(lifted=True)
        started = Fleet(tmp_path, runtime, {**os.environ, **settings, "PYTHONPATH": paths})
        stack.callback(started.stop)
        started.start_worker()
        started.start("beat", "beat", "--pidfile=")
        yield started


@pytest.fixture
def receiver() -> Iterator[Endpoint]:
    with an_endpoint() as endpoint:
        yield endpoint


def assert_same_to_the_byte(receiver: Endpoint, events: Sequence[str], *, secret: str) -> None:
    """Every event came, each time under its own id, as the same bytes, and with a signature of its own."""
    by_id = receiver.by_id()
    assert set(by_id) == set(events)
    for taken in by_id.values():
        assert len({each.body for each in taken}) == 1
        assert all(Webhook(secret).verify(each.body, dict(each.headers)) for each in taken)


def assert_log_is_complete(fleet: Fleet, receiver: Endpoint) -> None:
    """Every request that came has its line, and the lines of a delivery are numbered without a gap."""
    lines: dict[str, list[dict[str, Any]]] = {}
    for line in fleet.rows(delivery_attempts):
        lines.setdefault(line["delivery_id"], []).append(line)
    by_id = receiver.by_id()
    for row in fleet.rows(deliveries):
        logged = sorted(lines[row["id"]], key=lambda line: int(line["number"]))
        assert [line["number"] for line in logged] == list(range(1, row["attempts"] + 1))
        assert len(logged) >= len(by_id[row["event_id"]])
        assert logged[-1]["status"] == 200


@pytest.mark.timeout(300)
def test_a_worker_killed_between_the_answer_and_the_mark_sends_the_same_again(fleet: Fleet, receiver: Endpoint) -> None:
    """F66: the receiver has said 200, nobody wrote it down; the event comes again with its id and its bytes."""
    secret = fleet.endpoint(receiver)
    asked, answered, may_answer = threading.Event(), threading.Event(), threading.Event()

    def hold(_taken: object) -> int:
        asked.set()
        assert may_answer.wait(60)
        return 200

    receiver.answer, receiver.answered = hold, lambda _taken: answered.set()
    (event,) = fleet.events(1)
    fleet.ring()
    assert asked.wait(60), "no delivery came"
    with fleet.database.write():  # nobody writes anything down while we look
        may_answer.set()
        assert answered.wait(10)
        fleet.kill_worker()
    receiver.answer = lambda _taken: 200
    fleet.start_worker()
    wait_until(lambda: fleet.are_done(1), within_s=_HOME_WITHIN_S, what="the second try", every_s=0.2)

    assert len(receiver.taken) == 2
    assert_same_to_the_byte(receiver, [event], secret=secret)
    assert_log_is_complete(fleet, receiver)
    assert [line["status"] for line in fleet.rows(delivery_attempts)] == [None, 200]


@pytest.mark.timeout(300)
def test_workers_killed_over_and_over_lose_and_change_nothing(fleet: Fleet, receiver: Endpoint) -> None:
    """F66: relay and deliveries under way, three times killed with everything they had in hand."""
    secret = fleet.endpoint(receiver)
    events: list[str] = []

    for _ in range(3):
        known = len(receiver.taken)
        events += fleet.events(60)
        fleet.ring()
        wait_until(lambda: len(receiver.taken) > known + 5, within_s=60, what="deliveries")  # noqa: B023 - called here
        events += fleet.events(20)
        fleet.ring()
        fleet.kill_worker()
        fleet.start_worker()
    wait_until(lambda: fleet.are_done(240), within_s=_HOME_WITHIN_S, what="everything home", every_s=0.2)

    assert_same_to_the_byte(receiver, events, secret=secret)
    assert_log_is_complete(fleet, receiver)
    assert len({row["event_id"] for row in fleet.rows(deliveries)}) == 240
    assert all(row["position"] for row in fleet.rows(outbox))


@pytest.mark.timeout(300)
def test_a_poisoned_row_and_a_broken_endpoint_hold_up_nobody(fleet: Fleet, receiver: Endpoint) -> None:
    """F67: 100 rows go out at once, whatever becomes of the one that cannot be read and of the one that answers 500."""
    with an_endpoint() as broken:
        broken.answer = lambda _taken: 500
        secret = fleet.endpoint(receiver)
        fleet.endpoint(broken)
        (poisoned,) = fleet.events(1)
        with fleet.database.write() as tx:
            tx.execute(sa.text("UPDATE outbox SET data = '{broken' WHERE id = :id").bindparams(id=poisoned))
        good = fleet.events(100)
        fleet.ring()
        wait_until(lambda: bool(receiver.taken), within_s=60, what="the first delivery")
        wait_until(lambda: len(receiver.by_id()) == 100, within_s=20, what="the others, right behind it")

        assert_same_to_the_byte(receiver, good, secret=secret)
        assert {row["state"] for row in fleet.rows(deliveries)} <= {"succeeded", "pending"}


@pytest.mark.timeout(300)
def test_an_endpoint_that_was_down_gets_everything_when_it_is_back(fleet: Fleet, receiver: Endpoint) -> None:
    """Refusals, a redirect, a request for patience: each try has its line in the log, and the last one arrives."""
    secret = fleet.endpoint(receiver)
    troubles = iter((500, 503, 301, 429, 502))
    receiver.answer = lambda _taken: next(troubles, 200)
    (event,) = fleet.events(1)
    fleet.ring()
    wait_until(lambda: fleet.are_done(1), within_s=_HOME_WITHIN_S, what="the end of the outage", every_s=0.2)
    more = fleet.events(20)
    fleet.ring()
    wait_until(lambda: fleet.are_done(21), within_s=_HOME_WITHIN_S, what="what waited behind it", every_s=0.2)

    assert_same_to_the_byte(receiver, [event, *more], secret=secret)
    assert_log_is_complete(fleet, receiver)
    (first, *_) = [row for row in fleet.rows(deliveries) if row["event_id"] == event]
    log = [line["status"] for line in fleet.rows(delivery_attempts) if line["delivery_id"] == first["id"]]
    assert log == [500, 503, 301, 429, 502, 200]
