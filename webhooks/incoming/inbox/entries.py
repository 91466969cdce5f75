"""The inbox for people: read what came, and have it looked at again."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jobs.broker import DRAIN
from jobs.core import instants
from jobs.services.documents import Document
from jobs.services.keys import Principal, Role
from jobs.services.paging import page, text_place
from jobs.services.runtime import Runtime
from jobs.storage.database import Database, Transaction
from jobs.storage.dead_letters import find_open
from jobs.storage.letter_decisions import mark_redriven
from webhooks.incoming.inbox.rows import EventFilter, Reader, get_event, list_events, lock_event, make_due
from webhooks.incoming.letters import LETTER_KIND
from webhooks.incoming.schema import InboxStatus

__all__ = ["LETTER_KIND", "EventFilter", "Reprocessed", "read_event", "read_events", "redrive_event", "reprocess"]


@dataclass(frozen=True, slots=True)
class Reprocessed:
    """What came of the wish.

    Attributes:
        event: The event afterwards.
        why_not: Why nothing was done; None where it is due again.
    """

    event: Document
    why_not: str | None = None


def read_events(
    database: Database, principal: Principal, *, wanted: EventFilter, cursor: str | None, limit: int
) -> Document:
    """A page of events, newest first. Those that belong to no tenant are an admin's to see.

    Raises:
        Unprocessable: The cursor is not one of ours.
    """
    before = text_place(cursor)
    with database.read() as tx:
        rows = list_events(tx, _reader(principal), wanted=wanted, before=before, limit=limit + 1)
    return page(rows, limit=limit, place="id", show=event_document)


def read_event(database: Database, principal: Principal, event_id: str) -> Document:
    """One event, whole.

    Raises:
        NotFound: There is none, or it is another tenant's.
    """
    with database.read() as tx:
        return event_document(get_event(tx, _reader(principal), event_id))


def reprocess(runtime: Runtime, principal: Principal, event_id: str) -> Reprocessed:
    """Has an event that came to nothing looked at again. What its job has taken in is left alone.

    Raises:
        NotFound: There is no such event, or it is another tenant's.
    """
    with runtime.database.write() as tx:
        get_event(tx, _reader(principal), event_id)
        why_not = _rearm(tx, event_id)
        letter = find_open(tx, LETTER_KIND, event_id) if why_not is None else None
        if letter is not None:
            mark_redriven(tx, letter["id"], by=principal.key_id)
        after = event_document(get_event(tx, _reader(principal), event_id))
    if why_not is None:
        runtime.broker.publish(DRAIN)
    return Reprocessed(after, why_not)


def redrive_event(tx: Transaction, letter: Mapping[str, Any]) -> str | None:
    """Makes a dead letter's event due again; returns why there is nothing to do, or None."""
    return _rearm(tx, letter["ref"])


def _rearm(tx: Transaction, event_id: str) -> str | None:
    row = lock_event(tx, event_id)
    why_not = _why_not(row)
    if row is None or why_not is not None:
        return why_not
    return None if make_due(tx, row) else "somebody is at it right now"


def _why_not(row: Mapping[str, Any] | None) -> str | None:
    if row is None:
        return "the event is no longer here"
    if row["status"] == InboxStatus.ACCEPTED:
        return "it waits to be applied already"
    if row["status"] == InboxStatus.APPLIED and row["job_id"] is None:
        return "it was handed on already"
    if row["status"] == InboxStatus.APPLIED:
        return f"job {row['job_id']} has taken it in"
    if row["job_id"] is not None and row["status"] in (InboxStatus.IGNORED, InboxStatus.CONFLICT):
        return f"job {row['job_id']} has judged it: {row['reason']}"
    return None


def event_document(row: Mapping[str, Any]) -> Document:
    """An event as the API shows it."""
    raw = row["raw"]
    return {
        "id": row["id"],
        "provider": row["provider"],
        "status": row["status"],
        "delivery_id": row["delivery_id"],
        "provider_job_id": row["provider_job_id"],
        "job": row["job_id"],
        "received_at": instants.to_text(row["received_at"]),
        "processed_at": instants.to_text(row["processed_at"]) if row["processed_at"] else None,
        "raw": None if raw is None else base64.b64encode(raw).decode("ascii"),
        "headers": row["headers"],
        "digest": row["digest"],
        "scheme": row["scheme"],
        "secret_index": row["secret_index"],
        "reason": row["reason"],
        "duplicates": row["duplicates"],
        "tries": row["tries"],
    }


def _reader(principal: Principal) -> Reader:
    return Reader(principal.tenant, with_fleet=principal.role.includes(Role.ADMIN))
