"""I14: an acknowledged webhook is a committed row, whatever breaks, wherever it breaks."""

from __future__ import annotations

import itertools
import os
import sqlite3
import threading
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.exc import DataError

from jobs.clock import FakeClock, SystemClock
from jobs.core.errors import Unavailable
from jobs.storage.database import Database
from tests.integration.webhooks.incoming.world import World, a_world, says
from webhooks.incoming.receiving import ingest

STEPS = ("begin", "insert", "letter", "settle", "commit", "committed")


class Saboteur:
    """Breaks chosen calls of the steps a group commit is made of."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.plan: dict[str, Exception | None] = {}
        whole = world.database.write

        @contextmanager
        def write() -> Any:
            self.meet("begin")
            with whole() as tx:
                yield tx
                self.meet("commit")
            self.meet("committed")  # the commit's answer is lost

        monkeypatch.setattr(world.database, "write", write)
        for step, name in (("insert", "insert_events"), ("letter", "write_letter"), ("settle", "_settle_repeats")):
            self._wrap(monkeypatch, step, name)

    def _wrap(self, monkeypatch: pytest.MonkeyPatch, step: str, name: str) -> None:
        whole: Callable[..., Any] = getattr(ingest, name)

        def broken(*args: Any, **named: Any) -> Any:
            self.meet(step)
            return whole(*args, **named)

        monkeypatch.setattr(ingest, name, broken)

    def meet(self, step: str) -> None:
        error = self.plan.pop(step, None)
        if error is not None:
            raise error


ERRORS = {
    "away": lambda: Unavailable("away"),
    "refused": lambda: DataError("INSERT", {}, Exception("bad value")),
    "defect": lambda: ValueError("a defect"),
}
BODIES = [b"{", *(b'{"id":"e","job":"p-%d","status":"%b"}' % (n % 3, w) for n, w in enumerate((b"queued", b"failed")))]


@pytest.mark.invariant("I14")
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sent=st.lists(
        st.tuples(
            st.sampled_from(range(len(BODIES))),
            st.integers(0, 3),
            st.dictionaries(st.sampled_from(STEPS), st.sampled_from(sorted(ERRORS)), max_size=2),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_whatever_breaks_an_acknowledged_event_is_a_committed_row(i14_world: tuple[World, Saboteur], sent: Any) -> None:
    world, saboteur = i14_world
    before = {row["id"] for row in world.events()}
    round_number = next(_rounds)
    acknowledged: list[str] = []

    for body, delivery, faults in sent:
        saboteur.plan = {step: ERRORS[kind]() for step, kind in faults.items()}
        reply = world.deliver(BODIES[body], delivery_id=f"r{round_number}-{delivery}")
        assert reply.status in (200, 503)
        if reply.status == 200:
            acknowledged.append(reply.json["event"])
        else:
            assert int(reply.headers["Retry-After"]) >= 1
    saboteur.plan = {}

    rows = {row["id"] for row in world.events()}
    assert set(acknowledged) <= rows
    assert before <= rows


_rounds = itertools.count()


@pytest.fixture
def i14_world(world: World, monkeypatch: pytest.MonkeyPatch) -> tuple[World, Saboteur]:
    return world, Saboteur(world, monkeypatch)


def test_a_commit_whose_answer_was_lost_meets_its_repeat_as_a_duplicate(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    saboteur = Saboteur(world, monkeypatch)
    saboteur.plan = {"committed": Unavailable("the connection was lost")}

    first = world.deliver(says("succeeded"))
    second = world.deliver(says("succeeded"))

    assert (first.status, second.said) == (503, "duplicate")
    assert second.json["event"] == world.event()["id"]


def test_one_row_the_database_refuses_fails_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten wait; the batch is refused for one of them; nine are acknowledged."""
    whole = ingest.insert_events

    def refuse_one(tx: Any, events: Any) -> Any:
        if any(event.delivery_id == "m4" for event in events):
            raise DataError("INSERT", {}, Exception("bad value"))
        return whole(tx, events)

    monkeypatch.setattr(ingest, "insert_events", refuse_one)
    replies: dict[int, int] = {}
    barrier = threading.Barrier(10)

    def send(number: int) -> None:
        barrier.wait()
        replies[number] = world.deliver(says("succeeded", job=f"p-{number}"), delivery_id=f"m{number}").status

    threads = [threading.Thread(target=send, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {number: status for number, status in replies.items() if status != 200} == {4: 503}
    assert len(world.events()) == 9


def test_a_database_that_is_locked_is_503_within_two_seconds(sqlite_url: str, clock: FakeClock) -> None:
    """F19: no hanging thread, no false acknowledgement. Another program holds SQLite's lock; then ours does."""
    database = Database.connect(sqlite_url, clock=clock)
    world = a_world(database, clock)
    stopwatch = SystemClock()
    intruder = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
    intruder.execute("BEGIN IMMEDIATE")
    began = stopwatch.monotonic()

    reply = world.deliver(says("succeeded"))

    assert reply.status == 503
    assert stopwatch.monotonic() - began < 2.0
    assert int(reply.headers["Retry-After"]) >= 1
    intruder.execute("ROLLBACK")
    intruder.close()
    assert world.deliver(says("succeeded")).status == 200
    assert len(world.events()) == 1
    world.intake.stop()
    database.close()


def test_a_writer_of_ours_that_is_stuck_is_503_within_two_seconds(sqlite_url: str, clock: FakeClock) -> None:
    database = Database.connect(sqlite_url, clock=clock)
    world = a_world(database, clock)
    stopwatch = SystemClock()

    with database.write():
        began = stopwatch.monotonic()
        reply = world.deliver(says("succeeded"))
        took_s = stopwatch.monotonic() - began

    assert (reply.status, took_s < 2.0) == (503, True)
    world.intake.stop()
    database.close()


def test_a_postgresql_that_is_not_there_is_503_within_two_seconds(clock: FakeClock) -> None:
    from homing.up.ports import free_port

    database = Database.connect(f"postgresql+psycopg://homing@127.0.0.1:{free_port()}/homing", clock=clock)
    world = a_world(database, clock)
    stopwatch = SystemClock()
    began = stopwatch.monotonic()

    replies = [world.deliver(says("succeeded")) for _ in range(2)]

    assert [reply.status for reply in replies] == [503, 503]
    assert stopwatch.monotonic() - began < 4.0
    world.intake.stop()


def test_a_database_that_never_answers_costs_a_caller_two_seconds_at_most(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a frozen PostgreSQL does. Whoever gave up is withdrawn from the queue; who was taken may be committed."""
    frozen = threading.Event()
    whole = world.intake.committer._store

    def never(events: Any) -> Any:
        frozen.wait()
        return whole(events)

    monkeypatch.setattr(world.intake.committer, "_store", never)
    stopwatch = SystemClock()
    began = stopwatch.monotonic()

    first = world.deliver(says("succeeded"), delivery_id="taken")
    took_s = stopwatch.monotonic() - began
    monkeypatch.setattr(world.intake.committer, "_caller_wait_s", 0.01)
    second = world.deliver(says("succeeded"), delivery_id="waiting")
    frozen.set()

    assert (first.status, second.status, took_s < 2.0) == (503, 503, True)
    world.intake.committer.stop()
    assert [row["delivery_id"] for row in world.events()] == ["taken"]
    assert world.deliver(says("succeeded"), delivery_id="taken").said == "duplicate"


def test_sixty_events_for_one_job_whose_row_is_locked_are_acknowledged_at_once(
    postgres_url: str, clock: FakeClock
) -> None:
    """F19: the receiver only inserts into its own table."""
    from jobs.storage.jobs import lock_job

    database = Database.connect(postgres_url, clock=clock)
    world = a_world(database, clock)
    job_id, token = world.submitted_job()
    stopwatch = SystemClock()

    with database.write() as tx:
        lock_job(tx, job_id)
        replies, waits_s = [], []
        for number in range(60):
            began = stopwatch.monotonic()
            event = says("processing", progress=number / 100)
            replies.append(world.deliver(event, token=token, delivery_id=f"m{number}"))
            waits_s.append(stopwatch.monotonic() - began)
    world.drain()

    assert {reply.said for reply in replies} == {"accepted"}
    assert max(waits_s) < 1
    assert world.job(job_id)["progress"]["fraction"] == 0.59
    world.intake.stop()
    database.close()


def test_a_repeat_of_a_row_a_worker_holds_waits_for_nobody(postgres_url: str, clock: FakeClock) -> None:
    """The count of repeats is a write to the row a worker may hold; it is left for later."""
    from webhooks.incoming.schema import inbox_events

    database = Database.connect(postgres_url, clock=clock)
    world = a_world(database, clock)
    world.deliver(says("succeeded"))
    world.intake.committer.stop()
    world.intake.committer._reset()  # as another process, which has not seen it
    stopwatch = SystemClock()

    with database.write() as tx:
        tx.execute(sa.select(inbox_events).with_for_update())
        began = stopwatch.monotonic()
        replies = [world.deliver(says("succeeded")) for _ in range(3)]
        took_s = stopwatch.monotonic() - began

    assert {reply.said for reply in replies} == {"duplicate"}
    assert took_s < 1.5
    world.intake.stop()
    database.close()


def test_a_repeat_is_answered_from_memory_and_still_counted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.deliver(says("succeeded"))

    def away(_events: Any) -> Any:
        raise Unavailable("the database is away")

    monkeypatch.setattr(world.intake.committer, "_store", away)
    replies = [world.deliver(says("succeeded")) for _ in range(5)]

    assert {reply.said for reply in replies} == {"duplicate"}
    assert world.event()["duplicates"] == 5


def test_a_child_of_a_fork_has_its_own_thread(sqlite_url: str, clock: FakeClock) -> None:
    database = Database.connect(sqlite_url, clock=clock)
    world = a_world(database, clock)
    world.deliver(says("succeeded"), delivery_id="parent")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads is what this is about
        child = os.fork()
    if child == 0:  # no assertion, no teardown of pytest's: only a status
        database.engine.dispose(close=False)
        os._exit(0 if world.deliver(says("succeeded", job="p-2"), delivery_id="child").status == 200 else 1)
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert {row["delivery_id"] for row in world.events()} == {"parent", "child"}
    world.intake.stop()
    database.close()


def test_stopping_commits_what_waits(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, reached, go_on = world.intake.committer._store, threading.Event(), threading.Event()

    def slow(events: Any) -> Any:
        reached.set()
        go_on.wait(5)
        return whole(events)

    monkeypatch.setattr(world.intake.committer, "_store", slow)
    replies: list[int] = []
    senders = [
        threading.Thread(target=lambda n=n: replies.append(world.deliver(says("queued"), delivery_id=f"m{n}").status))
        for n in range(3)
    ]
    for sender in senders:
        sender.start()
    assert reached.wait(5)
    stopper = threading.Thread(target=world.intake.committer.stop)
    stopper.start()
    go_on.set()
    for thread in [*senders, stopper]:
        thread.join(timedelta(seconds=5).total_seconds())

    assert replies == [200, 200, 200]
    assert len(world.events()) == 3
