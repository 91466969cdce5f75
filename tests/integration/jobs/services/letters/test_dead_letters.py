from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from jobs.broker import RELAY, SUBMIT
from jobs.clock import FakeClock
from jobs.core.errors import NotFound
from jobs.core.states import JobState
from jobs.services.keys import Principal, Role
from jobs.services.letters.dead_letters import LetterFilter, discard, read_letter, read_letters, redrive
from jobs.services.runtime import Runtime
from jobs.storage.database import Database, Transaction
from jobs.storage.dead_letters import dead_letter
from jobs.storage.jobs import get_job, lock_job, update_bookkeeping
from jobs.storage.schema import handler_runs, outbox
from tests.factories import TENANT, T, new_job, seen
from tests.fakes.broker import RecordingBroker
from tests.fakes.runtime import a_runtime

OPERATOR = Principal(TENANT, Role.OPERATOR, "key_1")
ADMIN = Principal(TENANT, Role.ADMIN, "key_2")
STRANGER = Principal("globex", Role.ADMIN, "key_3")


@pytest.fixture
def broker() -> RecordingBroker:
    return RecordingBroker()


@pytest.fixture
def runtime(database: Database, broker: RecordingBroker) -> Runtime:
    return a_runtime(database, broker=broker)


def a_letter(database: Database, kind: str, ref: str, **fields: Any) -> str:
    facts = {"reason": "it failed", "attempts": 8, "tenant": TENANT, **fields}
    with database.write() as tx:
        return dead_letter(tx, kind, ref, **facts)


def a_dead_submit(database: Database, **columns: Any) -> tuple[str, str]:
    job_id = new_job(database, **{"next_submit_at": None, "submit_tries": 8, "starts": 5, **columns})["id"]
    return str(job_id), a_letter(database, "submit", job_id, job_id=job_id)


def row_of(database: Database, job_id: str) -> Mapping[str, Any]:
    with database.read() as tx:
        return get_job(tx, job_id)


def test_a_redrive_waits_for_its_job_before_it_holds_the_letter(runtime: Runtime, database: Database) -> None:
    """Whoever reports a failure again holds the job, then writes the letter; PostgreSQL would kill one of the two."""
    job_id, letter_id = a_dead_submit(database)
    person = ThreadPoolExecutor(1)

    with database.write() as tx:
        lock_job(tx, job_id)
        done = person.submit(redrive, runtime, OPERATOR, letter_id)
        wait([done], timeout=0.3)
        dead_letter(tx, "submit", job_id, reason="it failed again", attempts=9, tenant=TENANT, job_id=job_id)
    person.shutdown()

    assert done.result().why_not is None
    assert done.result().letter["reason"] == "it failed again"


def test_a_submit_is_due_again_as_if_for_the_first_time(
    runtime: Runtime, database: Database, broker: RecordingBroker, clock: FakeClock
) -> None:
    job_id, letter_id = a_dead_submit(database)

    done = redrive(runtime, OPERATOR, letter_id)

    assert done.why_not is None
    row = row_of(database, job_id)
    assert (row["next_submit_at"], row["submit_tries"], row["starts"]) == (clock.now(), 0, 0)
    assert broker.take(SUBMIT) == [(job_id,)]
    assert (done.letter["redriven_by"], done.letter["redriven_at"]) == ("key_1", "2026-01-01T00:00:00.000000Z")


@pytest.mark.invariant("I11")
def test_a_second_redrive_acts_no_more_and_says_why(
    runtime: Runtime, database: Database, broker: RecordingBroker
) -> None:
    job_id, letter_id = a_dead_submit(database)
    redrive(runtime, OPERATOR, letter_id)
    broker.take(SUBMIT)
    with database.write() as tx:
        update_bookkeeping(tx, job_id, {"next_submit_at": None, "submit_tries": 3})

    again = redrive(runtime, OPERATOR, letter_id)

    assert again.why_not == "it was redriven before, by key_1"
    assert row_of(database, job_id)["submit_tries"] == 3
    assert broker.messages == []


@pytest.mark.invariant("I11")
def test_of_many_redrives_at_once_one_acts(runtime: Runtime, database: Database, broker: RecordingBroker) -> None:
    _, letter_id = a_dead_submit(database)
    barrier = threading.Barrier(6)

    def press() -> str | None:
        barrier.wait(10)
        return redrive(runtime, OPERATOR, letter_id).why_not

    with ThreadPoolExecutor(6) as pool:
        answers = [pressed.result(30) for pressed in [pool.submit(press) for _ in range(6)]]

    assert answers.count(None) == 1
    assert len(broker.take(SUBMIT)) == 1


@pytest.mark.invariant("I11")
def test_what_fails_again_is_a_new_letter_and_the_old_one_keeps_its_history(
    runtime: Runtime, database: Database, clock: FakeClock
) -> None:
    job_id, first = a_dead_submit(database)
    redrive(runtime, OPERATOR, first)
    clock.advance(timedelta(hours=1))

    second = a_letter(database, "submit", job_id, job_id=job_id)

    assert second != first
    old = read_letter(database, OPERATOR, first)
    assert (old["redriven_by"], old["attempts"], old["last_failed_at"]) == ("key_1", 8, "2026-01-01T00:00:00.000000Z")


def test_a_submit_whose_job_has_ended_is_left_alone_and_the_letter_stays_open(
    runtime: Runtime, database: Database
) -> None:
    job_id, letter_id = a_dead_submit(database)
    with database.write() as tx:
        runtime.observer.observe(tx, job_id, seen(JobState.SUCCEEDED))

    done = redrive(runtime, OPERATOR, letter_id)

    assert done.why_not == "the job has ended: succeeded"
    assert done.letter["redriven_at"] is None
    assert row_of(database, job_id)["next_submit_at"] is None


def test_a_submit_that_was_accepted_after_all_is_not_sent_again(runtime: Runtime, database: Database) -> None:
    _, letter_id = a_dead_submit(database, provider_job_id="p-1")

    assert "accepted the job since, as p-1" in (redrive(runtime, OPERATOR, letter_id).why_not or "")


def test_a_poll_is_due_again(runtime: Runtime, database: Database, clock: FakeClock) -> None:
    job_id = new_job(database, provider_job_id="p-1", next_submit_at=None, poll_failures=8, missing_reads=3)["id"]
    letter_id = a_letter(database, "poll", job_id, job_id=job_id)

    assert redrive(runtime, OPERATOR, letter_id).why_not is None

    row = row_of(database, job_id)
    assert (row["next_poll_at"], row["poll_failures"], row["missing_reads"]) == (clock.now(), 0, 0)


def test_a_poll_without_a_run_has_nothing_to_ask(runtime: Runtime, database: Database) -> None:
    job_id = new_job(database)["id"]
    letter_id = a_letter(database, "poll", job_id, job_id=job_id)

    assert "no run" in (redrive(runtime, OPERATOR, letter_id).why_not or "")


def test_a_cancel_is_due_again_also_where_the_job_has_ended(
    runtime: Runtime, database: Database, clock: FakeClock
) -> None:
    ended = {"state": "failed", "finished_at": T, "ended_by": "deadline", "next_submit_at": None, "next_alarm_at": None}
    job_id = new_job(database, provider_job_id="p-1", cancel_tries=8, **ended)["id"]
    letter_id = a_letter(database, "cancel", job_id, job_id=job_id)

    assert redrive(runtime, OPERATOR, letter_id).why_not is None

    assert row_of(database, job_id)["next_cancel_at"] == clock.now()


def test_a_cancel_of_a_run_the_provider_has_ended_is_pointless(runtime: Runtime, database: Database) -> None:
    job_id = new_job(database)["id"]
    with database.write() as tx:
        runtime.observer.observe(tx, job_id, seen(JobState.SUCCEEDED))
    letter_id = a_letter(database, "cancel", job_id, job_id=job_id)

    assert "ended the run since" in (redrive(runtime, OPERATOR, letter_id).why_not or "")


def test_a_handler_has_its_tries_anew(runtime: Runtime, database: Database, clock: FakeClock) -> None:
    with database.write() as tx:
        dead = {"event_id": "evt_1", "handler": "h", "tries": 8, "first_failed_at": T, "error": "boom"}
        run_id = tx.execute(sa.insert(handler_runs).values(dead).returning(handler_runs.c.id)).scalar_one()
    letter_id = a_letter(database, "handler", str(run_id))

    assert redrive(runtime, OPERATOR, letter_id).why_not is None

    with database.read() as tx:
        run = tx.row(sa.select(handler_runs))
    assert run is not None
    assert (run["tries"], run["next_try_at"]) == (0, clock.now())


def test_a_handler_that_is_done_stays_done(runtime: Runtime, database: Database) -> None:
    with database.write() as tx:
        done = {"event_id": "evt_1", "handler": "h", "tries": 1, "done_at": T}
        run_id = tx.execute(sa.insert(handler_runs).values(done).returning(handler_runs.c.id)).scalar_one()

    assert redrive(runtime, OPERATOR, a_letter(database, "handler", str(run_id))).why_not is not None
    assert redrive(runtime, OPERATOR, a_letter(database, "handler", "junk")).why_not is not None


def test_a_parked_event_is_relayed_again(runtime: Runtime, database: Database, broker: RecordingBroker) -> None:
    event_id = "evt_parked"
    with database.write() as tx:
        parked = {
            "id": event_id,
            "type": "job.created",
            "schema_version": 1,
            "occurred_at": T,
            "data": {},
            "relay_tries": 5,
            "parked_at": T,
            "tenant": TENANT,
        }
        tx.execute(sa.insert(outbox).values(parked))
    letter_id = a_letter(database, "event", event_id)

    assert redrive(runtime, OPERATOR, letter_id).why_not is None

    assert broker.take(RELAY) == [()]
    with database.read() as tx:
        row = tx.row(sa.select(outbox).where(outbox.c.id == event_id))
    assert row is not None
    assert (row["parked_at"], row["relay_tries"]) == (None, 0)


def test_a_double_submit_cannot_be_undone_by_a_try(runtime: Runtime, database: Database) -> None:
    letter_id = a_letter(database, "double_submit", "job_1/p-2")

    assert "discard this letter" in (redrive(runtime, OPERATOR, letter_id).why_not or "")


def test_a_kind_nobody_knows_is_said_to_be_unknown(runtime: Runtime, database: Database) -> None:
    assert "'mystery'" in (redrive(runtime, OPERATOR, a_letter(database, "mystery", "x")).why_not or "")


def test_a_stranger_to_jobs_brings_its_own_kind(runtime: Runtime, database: Database) -> None:
    seen_refs = []

    def reprocess(_tx: Transaction, letter: Mapping[str, Any]) -> str | None:
        seen_refs.append(letter["ref"])
        return None

    runtime.redrivers = {"mystery": reprocess}

    assert redrive(runtime, OPERATOR, a_letter(database, "mystery", "x")).why_not is None
    assert seen_refs == ["x"]


def test_work_that_breaks_leaves_the_letter_open(runtime: Runtime, database: Database) -> None:
    def breaks(_tx: Transaction, _letter: Mapping[str, Any]) -> str | None:
        raise RuntimeError("broken")

    runtime.redrivers = {"mystery": breaks}
    letter_id = a_letter(database, "mystery", "x")

    with pytest.raises(RuntimeError):
        redrive(runtime, OPERATOR, letter_id)

    assert read_letter(database, OPERATOR, letter_id)["redriven_at"] is None


def test_a_discarded_letter_is_neither_redriven_nor_discarded_again(runtime: Runtime, database: Database) -> None:
    job_id, letter_id = a_dead_submit(database)

    first, second = (discard(runtime, OPERATOR, letter_id) for _ in range(2))

    assert (first.why_not, second.why_not) == (None, "it was discarded before, by key_1")
    assert redrive(runtime, OPERATOR, letter_id).why_not == "it was discarded before, by key_1"
    assert row_of(database, job_id)["next_submit_at"] is None


def test_letters_belong_to_their_tenant(runtime: Runtime, database: Database) -> None:
    _, letter_id = a_dead_submit(database)

    for call in (read_letter,):
        with pytest.raises(NotFound):
            call(database, STRANGER, letter_id)
    for act in (redrive, discard):
        with pytest.raises(NotFound):
            act(runtime, STRANGER, letter_id)


def test_letters_of_nobody_are_an_admins(database: Database) -> None:
    letter_id = a_letter(database, "inbox", "evt_1", tenant=None)

    assert read_letter(database, ADMIN, letter_id)["ref"] == "evt_1"
    with pytest.raises(NotFound):
        read_letter(database, OPERATOR, letter_id)


def test_the_list_is_filtered_and_goes_on(runtime: Runtime, database: Database, clock: FakeClock) -> None:
    job_id, closed = a_dead_submit(database)
    redrive(runtime, OPERATOR, closed)
    clock.advance(1)
    kept = a_letter(database, "event", "evt_1")
    clock.advance(1)
    a_letter(database, "event", "evt_2", tenant="globex")

    def found(**wanted: Any) -> list[str]:
        page = read_letters(database, OPERATOR, wanted=LetterFilter(**wanted), cursor=None, limit=9)
        return [letter["id"] for letter in page["data"]]

    assert found() == [kept, closed]
    assert found(is_open=True) == [kept]
    assert found(is_open=False) == [closed]
    assert found(kind="submit") == found(job_id=job_id) == [closed]
    first = read_letters(database, OPERATOR, wanted=LetterFilter(), cursor=None, limit=1)
    rest = read_letters(database, OPERATOR, wanted=LetterFilter(), cursor=first["next_cursor"], limit=1)
    assert ([row["id"] for row in rest["data"]], rest["next_cursor"]) == ([closed], None)
