"""What the database says of dead letters, while the fleet is under fire: each question is one statement, one moment.

A letter is written with the step that gives a piece of work up, and marked with the step that takes it up again. So at
every moment the pieces nobody works on are the pieces with an open letter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import sqlalchemy as sa

from jobs.core.events import EventType
from jobs.core.states import OPEN
from jobs.storage.database import Transaction
from jobs.storage.dead_letters import is_open
from jobs.storage.schema import artifacts, dead_letters, handler_runs, jobs, outbox
from webhooks.incoming.schema import InboxStatus, inbox_events
from webhooks.outgoing.schema import DeliveryState, deliveries

_RUN = sa.cast(handler_runs.c.id, sa.Text)
_OPEN_JOB = sa.and_(jobs.c.state.in_(sorted(OPEN)), jobs.c.review_reason.is_(None), jobs.c.outcome.is_(None))
_GIVEN_UP: Mapping[str, tuple[sa.ColumnElement[str], sa.ColumnElement[bool]]] = {
    "submit": (jobs.c.id, sa.and_(_OPEN_JOB, jobs.c.provider_job_id.is_(None), jobs.c.next_submit_at.is_(None))),
    "poll": (jobs.c.id, sa.and_(_OPEN_JOB, jobs.c.provider_job_id.is_not(None), jobs.c.next_poll_at.is_(None))),
    "handler": (_RUN, sa.and_(handler_runs.c.done_at.is_(None), handler_runs.c.next_try_at.is_(None))),
    "event": (outbox.c.id, sa.and_(outbox.c.parked_at.is_not(None), outbox.c.type != EventType.DEAD_LETTER_CREATED)),
    "artifact": (artifacts.c.id, artifacts.c.state.in_(("rejected", "expired"))),
    "inbox": (inbox_events.c.id, inbox_events.c.status.in_((InboxStatus.DEAD, InboxStatus.QUARANTINED))),
    "delivery": (deliveries.c.id, deliveries.c.state == DeliveryState.FAILED),
}
#: A webhook may bring home the job that nobody asks about any more; its letter then waits to be discarded.
_OVERTAKEN = ("submit", "poll")
_WHOLE = ("id", "kind", "ref", "job_id", "reason", "evidence", "redriven_at", "redriven_by", "discarded_at")


def list_letters(tx: Transaction) -> list[dict[str, Any]]:
    """Every letter there has been, oldest first."""
    columns = dead_letters.c
    return tx.rows(sa.select(*(columns[name] for name in _WHOLE)).order_by(columns.id))


def is_waiting(letter: Mapping[str, Any]) -> bool:
    """Whether it waits for a person."""
    return letter["redriven_at"] is None and letter["discarded_at"] is None


def find_faults(tx: Transaction) -> Iterator[str]:
    """Work that was given up without a letter, and letters about work that goes on."""
    for kind, (ref, given_up) in _GIVEN_UP.items():
        letter = sa.and_(dead_letters.c.kind == kind, dead_letters.c.ref == ref)
        known = sa.exists().where(letter, sa.or_(is_open(), dead_letters.c.discarded_at.is_not(None)))
        for row in tx.rows(sa.select(ref.label("ref")).where(given_up, ~known)):
            yield f"{kind} {row['ref']} was given up, and has no open letter"
        if kind in _OVERTAKEN:
            continue
        for row in tx.rows(sa.select(ref.label("ref")).where(letter, is_open(), ~given_up)):
            yield f"{kind} {row['ref']} has an open letter, and goes on"


def list_done(tx: Transaction) -> dict[str, str]:
    """Each step that is done, and when it was: of handlers, files and deliveries."""
    done = sa.select(_RUN.label("id"), handler_runs.c.done_at.label("at")).where(handler_runs.c.done_at.is_not(None))
    stored = sa.select(artifacts.c.id, artifacts.c.settled_at.label("at")).where(artifacts.c.state == "stored")
    sent = sa.select(deliveries.c.id, deliveries.c.finished_at.label("at"))
    found = tx.rows(done) + tx.rows(stored) + tx.rows(sent.where(deliveries.c.state == DeliveryState.SUCCEEDED))
    return {str(row["id"]): str(row["at"]) for row in found}


def count_announced(tx: Transaction) -> dict[str, int]:
    """How often each letter was told of, by its id."""
    counted: dict[str, int] = {}
    for row in tx.rows(sa.select(outbox.c.data).where(outbox.c.type == EventType.DEAD_LETTER_CREATED)):
        letter = str(row["data"]["dead_letter"]["id"])
        counted[letter] = counted.get(letter, 0) + 1
    return counted
