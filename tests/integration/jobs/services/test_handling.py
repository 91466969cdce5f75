"""Python handlers against real databases: at least once, exactly once, and each on its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from jobs.broker import RUN_HANDLER
from jobs.clock import FakeClock
from jobs.core.errors import Unavailable
from jobs.core.events import Event, EventType
from jobs.handlers import Handler, HandlerRegistry
from jobs.services import handling
from jobs.services.handling import LEASE, MAX_STARTS, MAX_TRIES, WAITS_S, Handled, claim_due_runs, run_handler
from jobs.services.relay import relay
from jobs.services.runtime import Runtime
from jobs.storage.database import Database
from jobs.storage.handler_runs import rearm
from jobs.storage.outbox import append_event
from jobs.storage.schema import dead_letters, handler_runs, outbox
from tests.fakes.broker import RecordingBroker
from tests.fakes.runtime import Sink, a_runtime

LONG = timedelta(hours=2)  # longer than any wait between two tries


class Crash(BaseException):
    """The process dies here."""


def announce(database: Database, *handlers: Handler) -> tuple[Runtime, list[tuple[int, str]]]:
    """One event, relayed; the runtime and the messages to its handlers."""
    broker = RecordingBroker()
    runtime = a_runtime(database, broker=broker, handlers=handlers)
    with database.write() as tx:
        append_event(
            tx, EventType.JOB_SUCCEEDED, tenant="acme", job_id="job_1", sequence=1, data={"job": {"id": "job_1"}}
        )
    relay(runtime)
    return runtime, [(int(run_id), token) for run_id, token in broker.take(RUN_HANDLER)]


def run_of(database: Database, handler: str = "sink") -> dict[str, Any]:
    with database.read() as tx:
        row = tx.row(sa.select(handler_runs).where(handler_runs.c.handler == handler))
    assert row is not None
    return row


def letters(database: Database) -> list[dict[str, Any]]:
    with database.read() as tx:
        return tx.rows(sa.select(dead_letters))


def run_due(runtime: Runtime) -> list[Handled]:
    """What a sweep and a worker do together."""
    return [run_handler(runtime, run_id, token) for run_id, token in claim_due_runs(runtime)]


@pytest.fixture
def effects(database: Database) -> Iterator[Callable[[], list[str]]]:
    """A table of a user's own, which a transactional handler writes; returns the event ids in it."""
    with database.write() as tx:
        tx.execute(sa.text("CREATE TABLE effects (event_id TEXT)"))

    def read() -> list[str]:
        with database.read() as tx:
            return [row["event_id"] for row in tx.rows(sa.text("SELECT event_id FROM effects"))]

    return read


def write_effect(event: Event, connection: sa.Connection) -> None:
    connection.execute(sa.text("INSERT INTO effects VALUES (:id)"), {"id": event.id})


def test_a_handler_receives_the_whole_envelope_and_is_marked_done(database: Database) -> None:
    sink = Sink()
    runtime, [(run_id, token)] = announce(database, sink.handler())

    outcome = run_handler(runtime, run_id, token)

    assert outcome is Handled.DONE
    (event,) = sink.calls
    assert event == Event(
        id=run_of(database)["event_id"],
        type="job.succeeded",
        schema_version=1,
        sequence=1,
        position=1,
        occurred_at="2026-01-01T00:00:00.000000Z",
        tenant="acme",
        data={"job": {"id": "job_1"}},
    )
    run = run_of(database)
    assert (run["tries"], run["done_at"], run["next_try_at"], run["lease_token"]) == (
        1,
        runtime.clock.now(),
        None,
        None,
    )


def test_a_message_that_arrives_twice_calls_once(database: Database, clock: FakeClock) -> None:
    sink = Sink()
    runtime, [(run_id, token)] = announce(database, sink.handler())
    run_handler(runtime, run_id, token)

    again = [run_handler(runtime, run_id, token), run_handler(runtime, run_id)]
    clock.advance(LONG)
    again += run_due(runtime)

    assert again == [Handled.SKIPPED, Handled.SKIPPED]
    assert len(sink.calls) == 1


def test_copies_of_a_message_at_the_same_moment_call_once(database: Database) -> None:
    sink = Sink()
    runtime, [(run_id, token)] = announce(database, sink.handler())
    ready = threading.Barrier(4)
    outcomes: list[Handled] = []

    def run() -> None:
        ready.wait()
        outcomes.append(run_handler(runtime, run_id, token))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(outcomes) == [Handled.DONE, *[Handled.SKIPPED] * 3]
    assert len(sink.calls) == 1


def test_one_handler_that_fails_delays_no_other(database: Database) -> None:
    broken, healthy = Sink(fails=True), Sink()
    runtime, messages = announce(database, broken.handler("broken"), healthy.handler("healthy"))

    outcomes = {run_handler(runtime, run_id, token) for run_id, token in messages}

    assert outcomes == {Handled.FAILED, Handled.DONE}
    assert run_of(database, "healthy")["done_at"] is not None
    failed = run_of(database, "broken")
    assert failed["error"] == "RuntimeError: the sink refuses"
    assert failed["lease_token"] is None
    assert timedelta(seconds=2.5) <= failed["next_try_at"] - runtime.clock.now() <= timedelta(seconds=5)


def test_waits_grow_and_then_a_person_decides(database: Database, clock: FakeClock) -> None:
    sink = Sink(fails=True)
    runtime, [(run_id, token)] = announce(database, sink.handler())
    outcomes = [run_handler(runtime, run_id, token)]
    waits = []
    while outcomes[-1] is Handled.FAILED:
        wait = run_of(database)["next_try_at"] - clock.now()
        clock.advance(wait - timedelta(microseconds=1))
        assert run_due(runtime) == []
        clock.advance(timedelta(microseconds=1))
        waits.append(wait.total_seconds())
        outcomes += run_due(runtime)

    assert outcomes == [Handled.FAILED] * (MAX_TRIES - 1) + [Handled.DEAD]
    longest = [*WAITS_S, *[WAITS_S[-1]] * 2]
    assert all(limit / 2 <= wait <= limit for wait, limit in zip(waits, longest, strict=True))
    assert len({event.id for event in sink.calls}) == 1
    (letter,) = letters(database)
    assert (letter["kind"], letter["ref"], letter["attempts"]) == ("handler", str(run_id), MAX_TRIES)
    assert (letter["tenant"], letter["job_id"]) == ("acme", "job_1")
    assert letter["first_failed_at"] < letter["last_failed_at"]
    assert "the sink refuses" in letter["reason"]
    clock.advance(LONG)
    assert run_due(runtime) == []


def test_a_redriven_run_has_all_its_tries_again(database: Database, clock: FakeClock) -> None:
    sink = Sink(fails=True)
    runtime, [(run_id, token)] = announce(database, sink.handler())
    run_handler(runtime, run_id, token)
    with database.write() as tx:
        assert not rearm(tx, run_id), "an open run is not dead"
    while not letters(database):
        clock.advance(LONG)
        run_due(runtime)
    sink.fails = False

    with database.write() as tx:
        assert rearm(tx, run_id)
    outcome = run_handler(runtime, run_id)

    assert outcome is Handled.DONE
    assert run_of(database)["tries"] == 1
    with database.write() as tx:
        assert not rearm(tx, run_id), "a done run is not run again"


def test_a_plain_handler_that_worked_before_a_crash_is_called_again_with_the_same_event_id(
    database: Database, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F66: after sending, before marking."""
    sink = Sink()
    runtime, [(run_id, token)] = announce(database, sink.handler())

    def die(*_: Any) -> None:
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(handling, "_mark_done", die)
        with pytest.raises(Crash):
            run_handler(runtime, run_id, token)
    clock.advance(LEASE)
    assert run_due(runtime) == [Handled.DONE]

    first, second = sink.calls
    assert first == second


def test_a_plain_handler_that_ran_is_not_called_again_because_the_writer_was_busy(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under load its mark met a busy SQLite writer, and two effects came of one event."""
    calls: list[str] = []
    write = database.write

    def busy_once() -> Any:
        monkeypatch.setattr(database, "write", write)
        raise Unavailable("the database's write lock was not free")

    def act(event: Event) -> None:
        calls.append(event.id)
        monkeypatch.setattr(database, "write", busy_once)

    runtime, [(run_id, token)] = announce(database, Handler("sink", ("job.*",), act))

    assert run_handler(runtime, run_id, token) is Handled.DONE
    assert len(calls) == 1
    assert (run_of(database)["tries"], run_of(database)["next_try_at"]) == (1, None)


@pytest.mark.parametrize("dies", ["before the work", "after the work", "at the commit"])
def test_a_transactional_handler_takes_effect_once_wherever_its_process_dies(
    database: Database, clock: FakeClock, effects: Callable[[], list[str]], dies: str
) -> None:
    deaths = [dies]

    def work(event: Event, connection: sa.Connection) -> None:
        if deaths == ["before the work"]:
            raise Crash(deaths.pop())
        write_effect(event, connection)
        if deaths == ["after the work"]:
            raise Crash(deaths.pop())
        if deaths == ["at the commit"]:
            sa.event.listen(connection, "commit", lambda _connection: _die(deaths))

    runtime, [(run_id, token)] = announce(database, Handler("sink", ("job.*",), work, transactional=True))
    with pytest.raises(Crash):
        run_handler(runtime, run_id, token)
    assert effects() == []
    clock.advance(LEASE)

    assert run_due(runtime) == [Handled.DONE]
    assert run_handler(runtime, run_id, token) is Handled.SKIPPED

    assert effects() == [run_of(database)["event_id"]]


def _die(deaths: list[str]) -> None:
    if deaths:
        raise Crash(deaths.pop())


def test_a_transactional_handler_that_fails_leaves_nothing_behind(
    database: Database, effects: Callable[[], list[str]]
) -> None:
    def work(event: Event, connection: sa.Connection) -> None:
        write_effect(event, connection)
        raise ValueError("on second thoughts")

    runtime, [(run_id, token)] = announce(database, Handler("sink", ("job.*",), work, transactional=True))

    assert run_handler(runtime, run_id, token) is Handled.FAILED

    assert effects() == []
    assert run_of(database)["error"] == "ValueError: on second thoughts"


def test_a_transactional_handler_may_compute_for_a_minute_before_postgresql_ends_its_session(
    postgres_url: str, clock: FakeClock
) -> None:
    """The rest of Homing has 15 s between two statements, and has them back afterwards."""
    show, allowed = sa.text("SHOW idle_in_transaction_session_timeout"), list[str]()

    def work(_event: Event, connection: sa.Connection) -> None:
        allowed.append(connection.execute(show).scalar_one())

    database = Database.connect(postgres_url, clock=clock, pool_size=1)
    runtime, [(run_id, token)] = announce(database, Handler("sink", ("job.*",), work, transactional=True))

    assert run_handler(runtime, run_id, token) is Handled.DONE

    with database.read() as tx:
        allowed.append(tx.execute(show).scalar_one())
    database.close()
    assert allowed == ["1min", "15s"]


@pytest.mark.invariant("I7")
def test_a_lease_that_ran_out_writes_no_mark(database: Database, clock: FakeClock) -> None:
    """The worker stalls past its lease; another takes the run, and the first one's mark is refused."""
    outcomes: list[Handled] = []

    class Stalling(Sink):
        def __call__(self, event: Any, *connection: Any) -> None:
            super().__call__(event)
            if len(self.calls) == 1:
                clock.advance(LEASE)
                outcomes.extend(run_due(runtime))

    sink = Stalling()
    runtime, [(run_id, token)] = announce(database, sink.handler())

    outcomes.append(run_handler(runtime, run_id, token))

    assert outcomes == [Handled.DONE, Handled.LOST]
    assert run_of(database)["tries"] == 2
    assert len({event.id for event in sink.calls}) == 1


@pytest.mark.invariant("I7")
def test_a_transactional_handler_without_its_lease_is_not_even_called(
    database: Database, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, effects: Callable[[], list[str]]
) -> None:
    runtime, [(run_id, token)] = announce(database, Handler("sink", ("job.*",), write_effect, transactional=True))
    call = handling._call

    def stall(runtime: Runtime, work: Any) -> None:
        monkeypatch.setattr(handling, "_call", call)
        clock.advance(LEASE)
        assert run_due(runtime) == [Handled.DONE]
        call(runtime, work)

    monkeypatch.setattr(handling, "_call", stall)

    assert run_handler(runtime, run_id, token) is Handled.LOST

    assert len(effects()) == 1


def test_a_handler_that_kills_its_worker_each_time_ends_as_a_dead_letter(database: Database, clock: FakeClock) -> None:
    """F58: the try is counted, and the next one planned, before the function is called."""
    starts = []

    def kill(event: Event) -> None:
        starts.append(clock.now())
        raise Crash

    healthy = Sink()
    runtime, messages = announce(database, Handler("sink", ("job.*",), kill), healthy.handler("healthy"))
    for run_id, token in messages:
        try:
            run_handler(runtime, run_id, token)
        except Crash:
            pass
    for _ in range(3 * MAX_TRIES):
        clock.advance(LONG)
        try:
            run_due(runtime)
        except Crash:
            pass

    assert len(starts) == MAX_STARTS == 3
    assert len(healthy.calls) == 1
    (letter,) = letters(database)
    words = "3 starts never came to an end: it may be what stopped its worker"
    assert (letter["attempts"], letter["reason"]) == (3, words)


def test_a_crashed_try_waits_for_its_turn_although_its_lease_has_ended(database: Database, clock: FakeClock) -> None:
    """F58: with growing waits, also where nobody was left to write one down."""

    class Killing(Sink):
        def __call__(self, event: Any, *connection: Any) -> None:
            super().__call__(event)
            if not self.fails:
                raise Crash

    sink = Killing(fails=True)
    runtime, [(run_id, token)] = announce(database, sink.handler())
    run_handler(runtime, run_id, token)
    for _ in range(2):
        clock.advance(LONG)
        run_due(runtime)
    sink.fails = False
    clock.advance(LONG)
    with pytest.raises(Crash):
        run_due(runtime)

    clock.advance(LEASE)

    assert len(sink.calls) == 4
    assert run_due(runtime) == []  # its fourth wait is at least five minutes
    clock.advance(timedelta(minutes=9))
    with pytest.raises(Crash):
        run_due(runtime)


def test_a_handler_that_is_no_longer_loaded_is_a_dead_letter_that_says_so(database: Database) -> None:
    runtime, [(run_id, token)] = announce(database, Sink().handler("shop.bookings.on_success"))
    runtime.handlers = HandlerRegistry()

    assert run_handler(runtime, run_id, token) is Handled.DEAD

    (letter,) = letters(database)
    assert letter["reason"] == (
        "no loaded module has the handler 'shop.bookings.on_success'; name its module in [plugins] modules"
    )
    assert letter["evidence"]["handler"] == "shop.bookings.on_success"
    with database.read() as tx:
        types = [row["type"] for row in tx.rows(sa.select(outbox.c.type).order_by(outbox.c.row_id))]
    assert types == ["job.succeeded", "dead_letter.created"]


def test_an_event_that_was_erased_is_a_dead_letter(database: Database) -> None:
    runtime, [(run_id, token)] = announce(database, Sink().handler())
    with database.write() as tx:
        tx.execute(sa.delete(outbox))

    assert run_handler(runtime, run_id, token) is Handled.DEAD

    assert letters(database)[0]["reason"] == "the event has been erased, or cannot be read"


def test_a_run_that_is_claimed_is_not_claimed_again_until_the_bell_has_had_its_time(
    database: Database, clock: FakeClock
) -> None:
    """F53: a backlog of messages does not grow while workers are busy."""
    sink = Sink()
    runtime, [(run_id, stale)] = announce(database, sink.handler())
    clock.advance(timedelta(seconds=30))
    ((_, fresh),) = claim_due_runs(runtime)

    assert claim_due_runs(runtime) == []
    assert run_handler(runtime, run_id, stale) is Handled.SKIPPED
    assert run_handler(runtime, run_id, fresh) is Handled.DONE
    assert len(sink.calls) == 1


def test_a_long_handlers_lease_is_renewed_while_it_works(database: Database, clock: FakeClock) -> None:
    """A download or a training takes longer than any lease; a redelivered message finds the lease held."""

    class Long(Sink):
        def __call__(self, event: Any, *connection: Any) -> None:
            super().__call__(event)
            (work,) = taken
            for _ in range(5):
                clock.advance(LEASE - timedelta(seconds=1))
                assert handling._renewal(runtime, work)()
                assert run_due(runtime) == []

    taken: list[Any] = []
    sink = Long()
    runtime, [(run_id, token)] = announce(database, sink.handler())
    original = handling._call

    def call(runtime: Runtime, work: Any) -> None:
        taken.append(work)
        original(runtime, work)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(handling, "_call", call)
        assert run_handler(runtime, run_id, token) is Handled.DONE

    assert len(sink.calls) == 1
    assert not handling._renewal(runtime, taken[0])(), "a lease is not renewed after its end"


def test_a_run_that_does_not_exist_is_skipped(database: Database) -> None:
    assert run_handler(a_runtime(database), 404, "token") is Handled.SKIPPED
