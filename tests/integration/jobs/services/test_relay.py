"""The relay against real databases: every committed event gets one place, and nobody waits behind a bad one."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest
import sqlalchemy as sa

from jobs.broker import RUN_HANDLER
from jobs.clock import FakeClock
from jobs.core.events import EventType
from jobs.core.states import JobState
from jobs.handlers import Handler
from jobs.services.documents import job_document
from jobs.services.handling import run_handler
from jobs.services.relay import BATCH, relay, relay_batch, relay_counted
from jobs.services.relay_batches import BELL_LEASE, MAX_TRIES
from jobs.storage.counters import lock_counter
from jobs.storage.database import Database, Transaction
from jobs.storage.handler_runs import claim_due
from jobs.storage.jobs import get_job
from jobs.storage.outbox import append_event, event_row
from jobs.storage.relay import POSITION, list_unrelayed, unpark
from jobs.storage.schema import dead_letters, handler_runs, outbox
from tests.factories import new_job, seen
from tests.fakes.broker import RecordingBroker
from tests.fakes.runtime import Sink, a_runtime


def add_event(tx: Transaction, provider: str = "renders") -> str:
    return append_event(tx, EventType.JOB_SUCCEEDED, tenant="acme", provider=provider, data={"job": {}})


def add_events(database: Database, count: int, provider: str = "renders") -> list[str]:
    with database.write() as tx:
        return [add_event(tx, provider) for _ in range(count)]


def positions(database: Database) -> dict[str, int | None]:
    statement = sa.select(outbox.c.id, outbox.c.position).order_by(outbox.c.row_id)
    with database.read() as tx:
        return {row["id"]: row["position"] for row in tx.rows(statement)}


def rows_of(database: Database, table: sa.Table) -> list[dict[str, Any]]:
    with database.read() as tx:
        return tx.rows(sa.select(table))


class Poison:
    """A handler registry's entry that cannot even be asked about one provider's events."""

    def __init__(self) -> None:
        self.cured = False

    def handler(self) -> Handler:
        poison = self

        class Poisoned(Handler):
            def wants(self, event_type: str, provider: str | None) -> bool:
                if provider == "poisoned" and not poison.cured:
                    raise ValueError("cannot be serialised")
                return False

        return Poisoned("poison", ("job.*",), print)


def test_committed_events_get_positions_without_a_gap_and_runs_for_the_handlers_that_want_them(
    database: Database,
) -> None:
    sink, other = Sink(), Sink()
    broker = RecordingBroker()
    handlers = (sink.handler("sink"), Handler("elsewhere", ("job.*",), other, provider="voices"))
    runtime = a_runtime(database, broker=broker, handlers=handlers)
    events = add_events(database, 450)

    outcome = relay(runtime)

    assert positions(database) == {event: place for place, event in enumerate(events, start=1)}
    assert (outcome.relayed, outcome.rung, outcome.failed) == (450, 450, set())
    runs = rows_of(database, handler_runs)
    assert sorted(run["event_id"] for run in runs) == sorted(events)
    assert {run["handler"] for run in runs} == {"sink"}
    assert sorted(broker.take(RUN_HANDLER)) == sorted((str(run["id"]), run["lease_token"]) for run in runs)


def test_a_second_relay_finds_nothing_to_do(database: Database) -> None:
    runtime = a_runtime(database, handlers=(Sink().handler(),))
    add_events(database, 3)
    relay(runtime)

    again = relay(runtime)

    assert (again.relayed, again.rung) == (0, 0)
    assert len(rows_of(database, handler_runs)) == 3


def test_a_row_with_a_smaller_number_that_appears_late_still_gets_its_place(database: Database) -> None:
    runtime = a_runtime(database)
    early, late = (event_row(EventType.JOB_SUCCEEDED, tenant="acme", at=runtime.clock.now(), data={}) for _ in range(2))
    with database.write() as tx:
        tx.execute(sa.insert(outbox).values(**late, row_id=20))
    relay(runtime)
    with database.write() as tx:
        tx.execute(sa.insert(outbox).values(**early, row_id=10))

    relay(runtime)

    assert positions(database) == {early["id"]: 2, late["id"]: 1}


def test_a_transaction_that_commits_after_a_later_one_is_relayed_after_it(postgres_url: str, clock: FakeClock) -> None:
    """Two open transactions, the one with the smaller row number commits last (PostgreSQL only: SQLite has one)."""
    database = Database.connect(postgres_url, clock=clock)
    runtime = a_runtime(database)
    with database.write() as slow:
        first = add_event(slow)
        with database.write() as quick:
            second = add_event(quick)
        relay(runtime)
        assert positions(database) == {second: 1}

    relay(runtime)

    assert positions(database) == {first: 2, second: 1}
    database.close()


def test_two_relays_at_once_leave_no_gap_and_no_double(database: Database) -> None:
    broker = RecordingBroker()
    runtime = a_runtime(database, broker=broker, handlers=(Sink().handler(),))
    events = add_events(database, 120)
    ready = threading.Barrier(3)

    def run() -> None:
        ready.wait()
        while relay_batch(runtime, limit=10).relayed:
            pass

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(place for place in positions(database).values() if place) == list(range(1, 121))
    assert set(positions(database)) == set(events)
    assert len(broker.take(RUN_HANDLER)) == len(rows_of(database, handler_runs)) == 120


def test_a_sweep_counts_no_starts_while_a_relay_is_under_way(database: Database) -> None:
    """On PostgreSQL the two statements lock the same rows in different orders, and one of them would be killed."""
    runtime = a_runtime(database)
    add_events(database, 20)
    sweep = threading.Thread(target=relay_counted, args=(runtime,))

    with database.write() as tx:
        lock_counter(tx, POSITION)
        sweep.start()
        sweep.join(0.3)
        begun = {row["relay_starts"] for row in rows_of(database, outbox)}
    sweep.join()

    assert begun == {0}
    assert sorted(place for place in positions(database).values() if place) == list(range(1, 21))


def test_a_poisoned_row_lets_the_others_pass_and_is_parked_after_its_tries(database: Database) -> None:
    """F67: the 100 go out at once; the bad row is parked with error and count, visible, and can be redriven."""
    poison = Poison()
    runtime = a_runtime(database, handlers=(poison.handler(), Sink().handler("sink", "job.*")))
    (bad,) = add_events(database, 1, provider="poisoned")
    good = add_events(database, 100)

    first = relay(runtime)

    assert (first.relayed, len(first.failed), first.parked) == (100, 1, 0)
    assert [positions(database)[event] for event in good] == list(range(1, 101))
    assert positions(database)[bad] is None
    for _ in range(MAX_TRIES - 1):
        last = relay(runtime)
    assert last.parked == 1
    (letter,) = rows_of(database, dead_letters)
    assert (letter["kind"], letter["ref"], letter["attempts"]) == ("event", bad, MAX_TRIES)
    assert letter["evidence"] == {"type": "job.succeeded", "error": "ValueError: cannot be serialised"}
    relay(runtime)
    assert [row["relay_tries"] for row in rows_of(database, outbox) if row["id"] == bad] == [MAX_TRIES]

    poison.cured = True
    with database.write() as tx:
        assert unpark(tx, bad)
        assert not unpark(tx, bad)
    relay(runtime)

    assert positions(database)[bad] == 102  # after the 100 and the event of the dead letter
    assert [row["event_id"] for row in rows_of(database, handler_runs) if row["event_id"] == bad] == [bad]


def test_a_whole_batch_of_poisoned_rows_stops_nobody_and_costs_each_one_try(database: Database) -> None:
    """F67: batches are bounded, and what failed a moment ago does not fill the next one."""
    runtime = a_runtime(database, handlers=(Poison().handler(),))
    bad = add_events(database, BATCH, provider="poisoned")
    good = add_events(database, 5)

    outcome = relay(runtime)

    assert (outcome.relayed, len(outcome.failed)) == (5, BATCH)
    assert [positions(database)[event] for event in good] == [1, 2, 3, 4, 5]
    assert {row["relay_tries"] for row in rows_of(database, outbox) if row["id"] in bad} == {1}


def test_however_many_rows_have_failed_the_next_batch_can_be_asked_for(database: Database) -> None:
    """A database takes some ten thousands of parameters."""
    add_events(database, 3)
    with database.read() as tx:
        first, *others = (row["row_id"] for row in list_unrelayed(tx, 10))
        without = {first, *range(10_000, 110_000)}

        assert [row["row_id"] for row in list_unrelayed(tx, 10, without=without)] == others


def test_a_row_whose_data_is_no_json_is_parked_too(sqlite_url: str, clock: FakeClock) -> None:
    """F67 (SQLite only: PostgreSQL refuses to store it)."""
    database = Database.connect(sqlite_url, clock=clock)
    runtime = a_runtime(database)
    bad, good = add_events(database, 2)
    with database.write() as tx:
        tx.execute(sa.text("UPDATE outbox SET data = '{broken' WHERE id = :id").bindparams(id=bad))

    for _ in range(MAX_TRIES):
        relay(runtime)

    with database.read() as tx:
        after = tx.rows(
            sa.select(outbox.c.id, outbox.c.position, outbox.c.parked_at).order_by(outbox.c.row_id).limit(2)
        )
    assert [(row["id"], row["position"]) for row in after] == [(bad, None), (good, 1)]
    assert after[0]["parked_at"] is not None
    database.close()


def test_a_poisoned_letters_event_brings_forth_no_further_letter(database: Database) -> None:
    class AllPoisoned(Handler):
        def wants(self, event_type: str, provider: str | None) -> bool:
            raise ValueError("no")

    runtime = a_runtime(database, handlers=(AllPoisoned("poison", ("job.*",), print),))
    add_events(database, 1)

    for _ in range(3 * MAX_TRIES):
        relay(runtime)

    assert len(rows_of(database, dead_letters)) == 1
    assert all(row["parked_at"] is not None for row in rows_of(database, outbox))


class Crash(BaseException):
    """The process dies here."""


class CrashingBroker:
    def publish(self, name: str, *args: str) -> bool:
        raise Crash


def test_a_crash_between_relay_and_bell_costs_the_bells_lease_and_nothing_else(
    database: Database, clock: FakeClock
) -> None:
    """F60 (b) for events: the run is a committed row; the sweep takes it once the bell has had its time."""
    sink = Sink()
    add_events(database, 1)
    with pytest.raises(Crash):
        relay(a_runtime(database, broker=CrashingBroker(), handlers=(sink.handler(),)))

    with database.write() as tx:
        assert claim_due(tx, 10, until=tx.now + BELL_LEASE) == []
    clock.advance(BELL_LEASE)
    with database.write() as tx:
        ((run_id, token),) = claim_due(tx, 10, until=tx.now + BELL_LEASE)
    run_handler(a_runtime(database, handlers=(sink.handler(),)), run_id, token)

    assert list(positions(database).values()) == [1]
    assert len(sink.calls) == 1


def test_nothing_of_a_transaction_that_was_rolled_back_is_ever_relayed(database: Database) -> None:
    """F60 (d), F70: rollback = no event, no run, no message, and no place left empty for it."""
    broker = RecordingBroker()
    runtime = a_runtime(database, broker=broker, handlers=(Sink().handler(),))

    def add_and_fail() -> None:
        with database.write() as tx:
            add_event(tx)
            raise RuntimeError("rolled back after the outbox insert")

    with pytest.raises(RuntimeError, match="rolled back"):
        add_and_fail()
    (kept,) = add_events(database, 1)

    relay(runtime)

    assert positions(database) == {kept: 1}
    assert len(broker.take(RUN_HANDLER)) == 1


def test_an_event_tells_of_the_state_that_was_committed_with_it(database: Database) -> None:
    """F70: the payload's state is the job's; the job read on arrival is at least as new as the payload."""
    read_on_arrival: list[tuple[Mapping[str, Any], Mapping[str, Any]]] = []

    def read_job(event: Any) -> None:
        told = event.data["job"]
        with database.read() as tx:
            read_on_arrival.append((told, job_document(get_job(tx, told["id"]), with_input=False)))

    broker = RecordingBroker()
    runtime = a_runtime(database, broker=broker, handlers=(Handler("reader", ("job.*",), read_job),))
    job = new_job(database)
    for state in (JobState.RUNNING, JobState.SUCCEEDED):
        with database.write() as tx:
            runtime.observer.observe(tx, job["id"], seen(state))
    relay(runtime)

    for run_id, token in broker.take(RUN_HANDLER):
        run_handler(runtime, int(run_id), token)

    assert [told["state"] for told, _ in read_on_arrival] == ["running", "running", "succeeded"]
    assert all(now["version"] >= told["version"] for told, now in read_on_arrival)
    final = read_on_arrival[-1]
    assert final[0] == final[1]


def test_a_premise_that_fails_relays_nothing(database: Database) -> None:
    runtime = a_runtime(database)
    add_events(database, 1)

    def refuse(tx: Transaction) -> None:
        raise TimeoutError("succeeded by another")

    with pytest.raises(TimeoutError):
        relay_batch(runtime, premise=refuse)

    assert list(positions(database).values()) == [None]


def test_a_bell_that_cannot_be_rung_is_not_counted_as_rung(database: Database) -> None:
    runtime = a_runtime(database, broker=RecordingBroker(reachable=False), handlers=(Sink().handler(),))
    add_events(database, 2)

    outcome = relay(runtime)

    assert (outcome.relayed, outcome.rung) == (2, 0)
    leases = {run["lease_until"] - runtime.clock.now() for run in rows_of(database, handler_runs)}
    assert leases == {BELL_LEASE}
