"""Ticks against real databases: one sweeper at a time, each due thing once, and a heartbeat only for finished work."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from jobs.broker import PING, POLL, RELAY, RUN_HANDLER
from jobs.clock import FakeClock
from jobs.core.errors import Stale
from jobs.core.events import EventType
from jobs.core.policy import Policy
from jobs.services import work
from jobs.services.polling import poll_job
from jobs.services.relay import relay
from jobs.services.relay_batches import BELL_LEASE
from jobs.services.runtime import Runtime
from jobs.storage.database import Database
from jobs.storage.outbox import append_event
from jobs.storage.premise import Premise
from jobs.storage.schema import counters, outbox
from reconciler import ticking, watchdog
from reconciler.counts import Counts, Sweep
from reconciler.epochs import begin
from reconciler.heartbeats import list_heartbeats
from reconciler.registry import build_sweeps
from reconciler.schedule import Tick
from reconciler.sweeps.handlers import Handlers
from reconciler.sweeps.inbox import Inbox
from reconciler.sweeps.outbox import Outbox
from reconciler.sweeps.polls import Polls
from reconciler.ticking import Reconciler
from tests.fakes.broker import RecordingBroker
from tests.fakes.locks import MemoryLockStore
from tests.fakes.runtime import Sink, a_runtime
from tests.fakes.stage import a_stage

SECOND = timedelta(seconds=1)
TICK = Tick("due", SECOND, ("polls",))


def _seconds(length: timedelta) -> int:
    return int(length.total_seconds())


@dataclass
class Scripted:
    """A sweep that does what it is told, pass by pass, and writes one row each time its premise holds."""

    passes: list[Callable[[], None]] = field(default_factory=list)
    written: int = 0

    def run_once(self, runtime: Runtime, premise: Premise) -> Counts:
        if self.passes:
            self.passes.pop(0)()
        with runtime.database.write() as tx:
            premise(tx)
            self.written += 1
        return Counts(handled=1, more=bool(self.passes))


def a_reconciler(database: Database, store: MemoryLockStore, **sweeps: Sweep) -> Reconciler:
    return Reconciler(a_runtime(database), store, sweeps)


def beats(database: Database) -> list[str]:
    with database.read() as tx:
        return [beat.name for beat in list_heartbeats(tx)]


@pytest.fixture
def store(clock: FakeClock) -> MemoryLockStore:
    return MemoryLockStore(clock)


def test_a_tick_runs_its_sweeps_and_leaves_a_heartbeat_for_each(database: Database, store: MemoryLockStore) -> None:
    sweeps = {"polls": Scripted(), "alarms": Scripted()}
    reconciler = a_reconciler(database, store, **sweeps)

    done = reconciler.run(Tick("due", SECOND, ("polls", "alarms")))

    assert done == {"polls": Counts(handled=1), "alarms": Counts(handled=1)}
    with database.read() as tx:
        found = {(beat.name, beat.period, beat.beat_at) for beat in list_heartbeats(tx)}
        now = tx.now
    assert found == {("sweep.alarms", SECOND, now), ("sweep.polls", SECOND, now)}


def test_a_sweep_goes_on_while_there_is_more_and_its_time_is_not_up(
    database: Database, store: MemoryLockStore, clock: FakeClock
) -> None:
    within = Scripted([lambda: None] * 5)
    beyond = Scripted([lambda: clock.advance(SECOND)] * 5)
    reconciler = a_reconciler(database, store, within=within, beyond=beyond)

    done = reconciler.run(Tick("due", SECOND, ("within", "beyond"), bound=timedelta(seconds=3)))

    assert done["within"].handled == 5
    assert done["beyond"].handled == 3


def test_a_sweep_that_fails_stops_no_other_and_leaves_no_heartbeat(database: Database, store: MemoryLockStore) -> None:
    def fail() -> None:
        raise RuntimeError("broken")

    reconciler = a_reconciler(database, store, polls=Scripted([fail]), alarms=Scripted())

    with capture_logs() as logs:
        done = reconciler.run(Tick("due", SECOND, ("polls", "alarms")))

    assert list(done) == ["alarms"]
    assert beats(database) == ["sweep.alarms"]
    assert [log["sweep"] for log in logs if log["event"] == "sweep failed"] == ["polls"]


def test_a_tick_whose_lock_is_held_does_nothing(database: Database, store: MemoryLockStore) -> None:
    sweep = Scripted()
    reconciler = a_reconciler(database, store, polls=sweep)
    inner: list[Any] = []
    sweep.passes.append(lambda: inner.append(reconciler.run(TICK)))

    outer = reconciler.run(TICK)

    assert inner == [{}]
    assert list(outer) == ["polls"]
    assert list(reconciler.run(TICK)) == ["polls"], "the lock is free again"


@pytest.mark.invariant("I7")
def test_a_sweeper_that_stalled_past_its_lock_writes_nothing_more(
    database: Database, store: MemoryLockStore, clock: FakeClock
) -> None:
    """F52: A stalls in the middle of a pass; B takes over and works; A wakes up and goes on."""
    b = Scripted()
    successor = a_reconciler(database, store, polls=b)

    def stall() -> None:
        clock.advance(TICK.lock_ttl)
        successor.run(TICK)

    a = Scripted([stall, lambda: None])
    with capture_logs() as logs:
        done = a_reconciler(database, store, polls=a).run(TICK)

    assert (a.written, b.written, done) == (0, 1, {})
    assert "sweep superseded" in [log["event"] for log in logs]
    assert [log for log in logs if log["event"] == "lock lost"], "its release is a no-op and says so"


@pytest.mark.invariant("I7")
def test_where_redis_is_away_two_sweepers_run_and_only_the_newer_writes(
    database: Database, store: MemoryLockStore
) -> None:
    store.away = True
    b = Scripted()
    other = a_reconciler(database, store, polls=b)
    a = Scripted([lambda: other.run(TICK) and None])

    a_reconciler(database, store, polls=a).run(TICK)

    assert (a.written, b.written) == (0, 1)


def test_a_superseded_run_leaves_no_heartbeat(database: Database, store: MemoryLockStore) -> None:
    polls = Scripted()
    reconciler = a_reconciler(database, store, polls=polls)
    original = polls.run_once

    def succeed_afterwards(runtime: Runtime, premise: Premise) -> Counts:
        counts = original(runtime, premise)
        begin(database, "due")
        return counts

    polls.run_once = succeed_afterwards  # type: ignore[method-assign]

    reconciler.run(TICK)

    assert beats(database) == []


def tick_at_once(reconciler: Reconciler, beats_count: int) -> None:
    """What several beats do in the same moment."""
    ready = threading.Barrier(beats_count)

    def tick() -> None:
        ready.wait()
        reconciler.run(TICK)

    threads = [threading.Thread(target=tick) for _ in range(beats_count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_with_two_beats_each_due_job_is_polled_once_per_due_time(
    database: Database, store: MemoryLockStore, clock: FakeClock
) -> None:
    """F53: two beats tick at once, each second for twenty; the poll takes place a moment after its bell."""
    stage = a_stage(database, clock, policy=Policy(poll_base=2 * SECOND, poll_cap=2 * SECOND))
    reconciler = Reconciler(stage.runtime, store, {"polls": Polls()})
    runs = dict(stage.running_job() for _ in range(5))
    polls_due = {job_id: [stage.job(job_id)["next_poll_at"]] for job_id in runs}
    for _ in range(20):
        tick_at_once(reconciler, 2)
        for job_id, token in stage.broker.take(POLL):
            poll_job(stage.runtime, job_id, token)
            polls_due[job_id].append(stage.job(job_id)["next_poll_at"])
        clock.advance(SECOND)

    reads = Counter(run for method, run in stage.provider.calls if method == "status")
    assert reads == {run: len(polls_due[job_id]) - 1 for job_id, run in runs.items()}
    assert all(len(set(due)) == len(due) >= 10 for due in polls_due.values())


def test_with_two_beats_and_no_redis_each_due_job_is_still_polled_once(
    database: Database, store: MemoryLockStore, clock: FakeClock
) -> None:
    """F52, F53: correct results do not depend on the lock."""
    store.away = True
    stage = a_stage(database, clock)
    reconciler = Reconciler(stage.runtime, store, {"polls": Polls()})
    job_ids = [stage.running_job()[0] for _ in range(5)]
    clock.advance(2)

    tick_at_once(reconciler, 3)

    assert sorted(job_id for job_id, _ in stage.broker.take(POLL)) == sorted(job_ids)


def test_while_workers_are_busy_the_queue_does_not_grow_with_every_tick(
    database: Database, store: MemoryLockStore, clock: FakeClock
) -> None:
    """F53: nobody takes messages; a due job is rung for once in the length of its lease."""
    stage = a_stage(database, clock)
    reconciler = Reconciler(stage.runtime, store, {"polls": Polls()})
    job_id, _run = stage.running_job()
    clock.advance(2)
    for _ in range(_seconds(work.LEASE * 1.5)):
        reconciler.run(TICK)
        clock.advance(SECOND)

    messages = stage.broker.take(POLL)

    assert len(messages) == 2
    assert [str(poll_job(stage.runtime, job_id, token)) for _, token in messages] == ["nothing", "same"]


def test_the_outside_watcher_is_pinged_after_good_polls_once_a_minute(
    database: Database, store: MemoryLockStore, clock: FakeClock
) -> None:
    broker = RecordingBroker()
    runtime = a_runtime(database, broker=broker, environ={"HOMING_HEARTBEAT_URL": "https://watch.example/ping"})
    sweep = Scripted()
    reconciler = Reconciler(runtime, store, {"polls": sweep})
    for _ in range(120):
        reconciler.run(TICK)
        clock.advance(SECOND)
    assert len(broker.take(PING)) == 2

    def fail() -> None:
        raise RuntimeError("broken")

    clock.advance(60)
    sweep.passes.append(fail)
    reconciler.run(TICK)

    assert broker.take(PING) == []


def test_nobody_is_pinged_where_no_watcher_is_named(database: Database, store: MemoryLockStore) -> None:
    reconciler = a_reconciler(database, store, polls=Scripted())

    reconciler.run(TICK)

    assert isinstance(reconciler.runtime.broker, RecordingBroker)
    assert reconciler.runtime.broker.messages == []


def test_a_tick_of_another_release_is_let_pass(database: Database, store: MemoryLockStore) -> None:
    assert a_reconciler(database, store).tick("of the next release") == {}


def test_every_real_sweep_comes_to_a_good_end_over_an_empty_database(
    database: Database, store: MemoryLockStore
) -> None:
    sweeps = build_sweeps(apply_inbox=lambda _runtime: 0, send_deliveries=lambda _runtime: 0)
    reconciler = Reconciler(a_runtime(database), store, sweeps)

    with capture_logs() as logs:
        done = {**reconciler.tick("due"), **reconciler.tick("inbox"), **reconciler.tick("outbox")}
        done |= {**reconciler.tick("handlers"), **reconciler.tick("learning")}

    assert done == dict.fromkeys(sweeps, Counts())
    assert logs == [], "a sweep that found nothing has nothing to say"


def test_an_idle_tick_writes_its_epoch_and_its_heartbeats_and_nothing_else(
    database: Database, store: MemoryLockStore
) -> None:
    Reconciler(
        a_runtime(database), store, build_sweeps(apply_inbox=lambda _runtime: 0, send_deliveries=lambda _runtime: 0)
    ).tick("due")

    with database.read() as tx:
        assert [row["name"] for row in tx.rows(sa.select(counters))] == ["epoch:due"]
        assert tx.rows(sa.select(outbox)) == []


def test_the_outbox_sweep_relays_what_lost_its_bell(database: Database, store: MemoryLockStore) -> None:
    """F60 (b), (c) for events."""
    sink = Sink()
    runtime = a_runtime(database, handlers=(sink.handler(),))
    with database.write() as tx:
        append_event(tx, EventType.JOB_SUCCEEDED, tenant="acme", data={})

    done = Reconciler(runtime, store, {"outbox": Outbox()}).run(Tick("outbox", SECOND, ("outbox",)))

    assert done["outbox"] == Counts(handled=1, rung=1)


def test_the_outbox_sweep_does_not_use_up_a_rows_tries_within_one_tick(
    database: Database, store: MemoryLockStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = a_runtime(database, handlers=(Sink().handler(),))
    with database.write() as tx:
        for _ in range(3):
            append_event(tx, EventType.JOB_SUCCEEDED, tenant="acme", data={})
    monkeypatch.setattr(type(runtime.handlers), "wanting", lambda *_: 1 / 0)

    done = Reconciler(runtime, store, {"outbox": Outbox(limit=3)}).run(Tick("outbox", SECOND, ("outbox",)))

    assert done["outbox"].failed == 3
    with database.read() as tx:
        assert {row["relay_tries"] for row in tx.rows(sa.select(outbox))} == {1}


def test_the_handlers_sweep_rings_for_what_is_due_and_only_once(
    database: Database, store: MemoryLockStore, clock: FakeClock
) -> None:
    broker = RecordingBroker()
    runtime = a_runtime(database, broker=broker, handlers=(Sink().handler(),))
    with database.write() as tx:
        append_event(tx, EventType.JOB_SUCCEEDED, tenant="acme", data={})
    relay(runtime)
    broker.take(RUN_HANDLER)
    tick, reconciler = Tick("handlers", SECOND, ("handlers",)), Reconciler(runtime, store, {"handlers": Handlers()})

    rung = []
    for _ in range(_seconds(BELL_LEASE) + 1):
        reconciler.run(tick)
        rung.append(len(broker.take(RUN_HANDLER)))
        clock.advance(SECOND)

    assert rung == [0] * _seconds(BELL_LEASE) + [1]


def test_the_inbox_sweep_applies_batch_after_batch(database: Database, store: MemoryLockStore) -> None:
    waiting = [200, 200, 30]
    sweep = Inbox(lambda _runtime: waiting.pop(0) if waiting else 0)

    done = a_reconciler(database, store, inbox=sweep).run(Tick("inbox", SECOND, ("inbox",)))

    assert done["inbox"].handled == 430


def test_the_tasks_find_the_process_own_reconciler(database: Database, store: MemoryLockStore) -> None:
    from reconciler import tasks

    with pytest.raises(RuntimeError, match="no reconciler"):
        ticking.current()
    ticking.install(a_reconciler(database, store, inbox=Scripted()))
    try:
        tasks.canary("poll")
        tasks.sweep("inbox")
    finally:
        ticking.install(None)

    assert beats(database) == ["queue.poll", "sweep.inbox"]


def test_a_premise_of_a_stale_epoch_says_which(database: Database) -> None:
    old = begin(database, "due")
    begin(database, "due")

    with pytest.raises(Stale, match="epoch 1 of due"), database.write() as tx:
        old(tx)


def test_a_recovery_is_rung_for(database: Database, store: MemoryLockStore, clock: FakeClock) -> None:
    reconciler = a_reconciler(database, store, polls=Scripted())
    reconciler.run(TICK)
    clock.advance(60)
    watchdog.run_once(database)

    reconciler.run(TICK)
    reconciler.run(TICK)

    assert isinstance(reconciler.runtime.broker, RecordingBroker)
    assert reconciler.runtime.broker.take(RELAY) == [()]


def test_a_long_sweep_keeps_its_lock(database: Database, store: MemoryLockStore, clock: FakeClock) -> None:
    """F53: sweeps do not overlap, however long one takes; each pass renews the lock."""
    rival = Scripted()
    intruder = a_reconciler(database, store, polls=rival)

    def work() -> None:
        clock.advance(TICK.lock_ttl - SECOND)
        intruder.run(TICK)

    done = a_reconciler(database, store, polls=Scripted([work] * 5)).run(
        Tick("due", SECOND, ("polls",), bound=timedelta(minutes=5))
    )

    assert done["polls"].handled == 5
    assert rival.written == 0
