"""F62 for every kind of dead letter: the first redrive acts once, any other is a no-op that says why.

What was done is not done again: each kind repeats its failed step alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from jobs.clock import FakeClock
from jobs.core.events import EventType
from jobs.core.states import JobState
from jobs.services.keys import Principal, Role
from jobs.services.letters.dead_letters import redrive
from jobs.services.letters.redrivers import REDRIVERS
from jobs.services.runtime import Runtime
from jobs.storage.artifacts import artifact_rows, insert_artifacts
from jobs.storage.database import Database, Transaction
from jobs.storage.dead_letters import dead_letter
from jobs.storage.extra_runs import insert_extra_run
from jobs.storage.outbox import append_event
from jobs.storage.schema import artifacts, dead_letters, extra_runs, handler_runs, jobs, outbox
from tests.factories import PROVIDER, TENANT, insert_test_job, seen
from tests.fakes.runtime import a_runtime
from webhooks.incoming.inbox import entries
from webhooks.incoming.schema import InboxStatus, inbox_events
from webhooks.outgoing import letters
from webhooks.outgoing.schema import deliveries, endpoints, event_bodies

OPERATOR = Principal(TENANT, Role.OPERATOR, "key_1")

#: Ends the thing in the way its world would, so that a redrive has nothing left to do.
Settle = Callable[[Transaction, Runtime], object]


class Dead(NamedTuple):
    """A thing that gave up.

    Attributes:
        ref: Of its letter.
        job_id: Of its letter.
        count_due: How many pieces of work are due for it.
        settle: See :data:`Settle`.
        bystanders: Due work of its neighbours, which a redrive must not touch.
    """

    ref: str
    job_id: str | None
    count_due: Callable[[Transaction], int]
    settle: Settle
    bystanders: Callable[[Transaction], int] = lambda _tx: 0


def count(tx: Transaction, *conditions: sa.ColumnElement[bool]) -> int:
    return int(tx.execute(sa.select(sa.func.count()).where(*conditions)).scalar_one())


def a_job(tx: Transaction, **columns: Any) -> str:
    idle = {"next_submit_at": None, "starts": 3, "submit_tries": 8, "cancel_tries": 8, "cancel_starts": 3}
    return str(insert_test_job(tx, **{**idle, **columns})["id"])


def ends(job_id: str) -> Settle:
    return lambda tx, runtime: runtime.observer.observe(tx, job_id, seen(JobState.SUCCEEDED, at=tx.now))


def a_submit(tx: Transaction) -> Dead:
    job_id = a_job(tx)
    return Dead(job_id, job_id, lambda tx: count(tx, jobs.c.next_submit_at.is_not(None)), ends(job_id))


def a_poll(tx: Transaction) -> Dead:
    job_id = a_job(tx, provider_job_id="p-1")
    return Dead(job_id, job_id, lambda tx: count(tx, jobs.c.next_poll_at.is_not(None)), ends(job_id))


def a_cancel(tx: Transaction) -> Dead:
    job_id = a_job(tx, provider_job_id="p-1", cancel_requested_at=tx.now)
    return Dead(job_id, job_id, lambda tx: count(tx, jobs.c.next_cancel_at.is_not(None)), ends(job_id))


def an_artifact(tx: Transaction) -> Dead:
    """Only the missing file: the other one is stored."""
    job_id = a_job(tx, provider_job_id="p-1")
    link = {"url": "http://127.0.0.1:1/a"}
    job = {"id": job_id, "tenant": TENANT, "provider": PROVIDER}
    rows = artifact_rows(job, [link, link], attempt=1, at=tx.now)
    gone = {"next_fetch_at": None, "settled_at": tx.now}
    rows = [{**rows[0], **gone, "state": "rejected", "path": None}, {**rows[1], **gone, "state": "stored", "path": "x"}]
    insert_artifacts(tx, rows)
    missing = artifacts.c.id == rows[0]["id"]
    stored = {"state": "stored", "path": "y", "next_fetch_at": None}
    return Dead(
        str(rows[0]["id"]),
        job_id,
        lambda tx: count(tx, missing, artifacts.c.next_fetch_at.is_not(None)),
        lambda tx, _runtime: tx.execute(sa.update(artifacts).where(missing).values(stored)),
        lambda tx: count(tx, ~missing, artifacts.c.next_fetch_at.is_not(None)),
    )


def a_handler(tx: Transaction) -> Dead:
    """Only the handler that failed: the other one is done."""
    event_id = append_event(tx, EventType.JOB_CREATED, tenant=TENANT, data={"job": {}})
    shared = {"event_id": event_id, "tries": 8}
    dead = {**shared, "handler": "failed", "first_failed_at": tx.now, "error": "boom"}
    run_id = tx.execute(sa.insert(handler_runs).values(dead).returning(handler_runs.c.id)).scalar_one()
    tx.execute(sa.insert(handler_runs).values({**shared, "handler": "fine", "done_at": tx.now}))
    mine, is_due = handler_runs.c.id == run_id, handler_runs.c.next_try_at.is_not(None)
    done = {"done_at": tx.now, "next_try_at": None}
    return Dead(
        str(run_id),
        None,
        lambda tx: count(tx, mine, is_due),
        lambda tx, _runtime: tx.execute(sa.update(handler_runs).where(mine).values(done)),
        lambda tx: count(tx, ~mine, is_due),
    )


def an_event(tx: Transaction) -> Dead:
    event_id = append_event(tx, EventType.JOB_CREATED, tenant=TENANT, data={"job": {}})
    mine = outbox.c.id == event_id
    tx.execute(sa.update(outbox).where(mine).values(parked_at=tx.now, relay_tries=5, relay_starts=3))
    relayed = {"parked_at": None, "relayed_at": tx.now}
    return Dead(
        event_id,
        None,
        lambda tx: count(tx, mine, outbox.c.parked_at.is_(None), outbox.c.relayed_at.is_(None)),
        lambda tx, _runtime: tx.execute(sa.update(outbox).where(mine).values(relayed)),
    )


def a_double_submit(tx: Transaction) -> Dead:
    job_id = a_job(tx, provider_job_id="p-1")
    insert_extra_run(tx, job_id=job_id, attempt=1, provider=PROVIDER, run="p-2")
    left = {"settled": "left", "settled_at": tx.now, "next_check_at": None, "tries": 8, "reason": "no"}
    tx.execute(sa.update(extra_runs).values(left))
    ended = {"settled": "ended", "settled_at": tx.now, "next_check_at": None, "reason": "over"}
    return Dead(
        f"{job_id}/p-2",
        job_id,
        lambda tx: count(tx, extra_runs.c.next_check_at.is_not(None)),
        lambda tx, _runtime: tx.execute(sa.update(extra_runs).values(ended)),
    )


def an_inbox_row(tx: Transaction) -> Dead:
    row = {
        "id": "evt_in",
        "provider": PROVIDER,
        "tenant": TENANT,
        "delivery_id": "d-1",
        "dedupe_key": "d-1",
        "secret_index": 0,
        "digest": "x",
        "raw": b"{}",
        "headers": {},
        "scheme": "none",
        "status": str(InboxStatus.DEAD),
        "received_at": tx.now,
        "tries": 3,
        "failures": 0,
        "duplicates": 0,
    }
    tx.execute(sa.insert(inbox_events).values(row))
    applied = {"status": str(InboxStatus.APPLIED), "next_try_at": None}
    return Dead(
        "evt_in",
        None,
        lambda tx: count(tx, inbox_events.c.next_try_at.is_not(None)),
        lambda tx, _runtime: tx.execute(sa.update(inbox_events).values(applied)),
    )


def a_delivery(tx: Transaction) -> Dead:
    """Only the endpoint that failed: the other one has it."""
    tx.execute(sa.insert(event_bodies).values(event_id="evt_1", body=b"{}"))
    for name in ("a", "b"):
        endpoint = {
            "id": f"ep_{name}",
            "tenant": TENANT,
            "kind": "subscribed",
            "url": "http://127.0.0.1:1/",
            "events": [],
        }
        rules = {"sees_fleet": False, "rate_per_s": 10.0, "concurrency": 5, "secrets": [], "state": "enabled"}
        tx.execute(sa.insert(endpoints).values({**endpoint, **rules, "created_at": tx.now, "updated_at": tx.now}))
        at = {"occurred_at": tx.now, "created_at": tx.now, "finished_at": tx.now}
        delivery = {"id": f"dlv_{name}", "tenant": TENANT, "endpoint_id": f"ep_{name}", "event_id": "evt_1", **at}
        counts = {"event_type": "job.succeeded", "attempts": 10, "tries": 10}
        tx.execute(
            sa.insert(deliveries).values({**delivery, **counts, "state": "failed" if name == "a" else "succeeded"})
        )
    mine, is_due = deliveries.c.id == "dlv_a", deliveries.c.next_try_at.is_not(None)
    taken = {"state": "succeeded", "next_try_at": None}
    return Dead(
        "dlv_a",
        None,
        lambda tx: count(tx, mine, is_due),
        lambda tx, _runtime: tx.execute(sa.update(deliveries).where(mine).values(taken)),
        lambda tx: count(tx, ~mine, is_due),
    )


KINDS: Mapping[str, Callable[[Transaction], Dead]] = {
    "submit": a_submit,
    "poll": a_poll,
    "cancel": a_cancel,
    "artifact": an_artifact,
    "handler": a_handler,
    "event": an_event,
    "double_submit": a_double_submit,
    entries.LETTER_KIND: an_inbox_row,
    letters.LETTER_KIND: a_delivery,
}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with capture_logs():
        yield


@pytest.fixture
def runtime(database: Database) -> Runtime:
    return at_work(database)


def at_work(database: Database) -> Runtime:
    runtime = a_runtime(database)
    runtime.redrivers = {entries.LETTER_KIND: entries.redrive_event, letters.LETTER_KIND: letters.redrive_delivery}
    return runtime


def bury(database: Database, kind: str) -> tuple[str, Dead]:
    with database.write() as tx:
        dead = KINDS[kind](tx)
        return write_letter(tx, kind, dead), dead


def write_letter(tx: Transaction, kind: str, dead: Dead, *, attempts: int = 8) -> str:
    evidence = {"provider": PROVIDER, "run": "p-2"}
    facts = {"reason": "r", "attempts": attempts, "tenant": TENANT, "job_id": dead.job_id, "evidence": evidence}
    return dead_letter(tx, kind, dead.ref, counts_all=kind == letters.LETTER_KIND, **facts)


def due(database: Database, dead: Dead) -> tuple[int, int]:
    with database.read() as tx:
        return dead.count_due(tx), dead.bystanders(tx)


def test_every_kind_is_in_the_table(runtime: Runtime) -> None:
    assert set(KINDS) == {*REDRIVERS, *runtime.redrivers}


@pytest.mark.invariant("I11")
@pytest.mark.parametrize("kind", KINDS)
def test_the_first_redrive_makes_the_failed_step_due_and_the_second_says_why_not(
    runtime: Runtime, database: Database, kind: str
) -> None:
    letter_id, dead = bury(database, kind)
    assert due(database, dead) == (0, 0)

    first, second = (redrive(runtime, OPERATOR, letter_id) for _ in range(2))

    assert (first.why_not, second.why_not) == (None, "it was redriven before, by key_1")
    assert due(database, dead) == (1, 0)


@pytest.mark.invariant("I11")
@pytest.mark.parametrize("kind", KINDS)
def test_of_several_redrives_at_once_one_acts(database_url: str, kind: str) -> None:
    database = Database.connect(database_url)
    runtime, barrier = at_work(database), threading.Barrier(4)
    letter_id, dead = bury(database, kind)

    def press() -> str | None:
        barrier.wait(10)
        return redrive(runtime, OPERATOR, letter_id).why_not

    with ThreadPoolExecutor(4) as pool:
        answers = [pressed.result(30) for pressed in [pool.submit(press) for _ in range(4)]]

    assert sorted(answers, key=str) == [None, *["it was redriven before, by key_1"] * 3]
    assert due(database, dead) == (1, 0)
    database.close()


@pytest.mark.invariant("I11")
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_over_by_now_is_left_alone_with_a_reason(runtime: Runtime, database: Database, kind: str) -> None:
    """The event's job has become terminal, the file is stored, the handler is done … since the letter was written."""
    letter_id, dead = bury(database, kind)
    with database.write() as tx:
        dead.settle(tx, runtime)

    done = redrive(runtime, OPERATOR, letter_id)

    assert done.why_not
    assert done.letter["redriven_at"] is None
    assert due(database, dead) == (0, 0)


@pytest.mark.invariant("I11")
@pytest.mark.parametrize("kind", KINDS)
def test_what_fails_again_keeps_its_attempts_and_its_first_failure(
    runtime: Runtime, database: Database, clock: FakeClock, kind: str
) -> None:
    letter_id, dead = bury(database, kind)
    redrive(runtime, OPERATOR, letter_id)
    clock.advance(timedelta(hours=1))

    # A delivery's row counts all its attempts; every other row begins anew.
    with database.write() as tx:
        again = write_letter(tx, kind, dead, attempts=13 if kind == letters.LETTER_KIND else 5)
        rows = {row["id"]: row for row in tx.rows(sa.select(dead_letters))}

    assert again != letter_id
    assert (rows[letter_id]["attempts"], rows[letter_id]["redriven_by"]) == (8, "key_1")
    assert rows[again]["attempts"] == 13
    assert rows[again]["first_failed_at"] == rows[letter_id]["first_failed_at"]
    assert rows[again]["last_failed_at"] - rows[again]["first_failed_at"] == timedelta(hours=1)
