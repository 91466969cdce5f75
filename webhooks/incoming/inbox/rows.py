"""Statements on the inbox for people: lists, one row, and making a row due again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from jobs.core.errors import NotFound
from jobs.storage.database import Transaction
from webhooks.incoming.schema import InboxStatus, inbox_events

#: A list shows small bodies; a page of the largest ones would be a gigabyte.
MAX_LISTED_BYTES = 64 * 1024

_table = inbox_events.c


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events: each filter that is set must hold."""

    status: str | None = None
    provider: str | None = None
    job_id: str | None = None
    delivery_id: str | None = None


@dataclass(frozen=True, slots=True)
class Reader:
    """Whose events may be seen.

    Attributes:
        with_fleet: Also those that belong to no tenant: nobody knows their job, and their provider serves several.
    """

    tenant: str
    with_fleet: bool

    def may_see(self) -> sa.ColumnElement[bool]:
        """The condition."""
        is_ours = _table.tenant == self.tenant
        return sa.or_(is_ours, _table.tenant.is_(None)) if self.with_fleet else is_ours


def list_events(
    tx: Transaction, reader: Reader, *, wanted: EventFilter, before: str | None, limit: int
) -> list[dict[str, Any]]:
    """Events, newest first; ``raw`` is None where it is longer than :data:`MAX_LISTED_BYTES`."""
    raw = sa.case((sa.func.length(_table.raw) <= MAX_LISTED_BYTES, _table.raw), else_=None).label("raw")
    columns = [column for column in _table if column.name != "raw"]
    conditions = [reader.may_see(), *_conditions(wanted)]
    if before is not None:
        conditions.append(_table.id < before)
    return tx.rows(sa.select(*columns, raw).where(*conditions).order_by(_table.id.desc()).limit(limit))


def get_event(tx: Transaction, reader: Reader, event_id: str) -> dict[str, Any]:
    """One event.

    Raises:
        NotFound: There is none, or it is another tenant's.
    """
    row = tx.row(sa.select(inbox_events).where(_table.id == event_id, reader.may_see()))
    if row is None:
        raise NotFound(f"there is no event {event_id!r} in the inbox")
    return row


def lock_event(tx: Transaction, event_id: str) -> dict[str, Any] | None:
    """An event without its body, held until the transaction ends; None where there is none."""
    columns = [column for column in _table if column.name != "raw"]
    return tx.row(sa.select(*columns).where(_table.id == event_id).with_for_update())


def make_due(tx: Transaction, row: Mapping[str, Any]) -> bool:
    """Makes a settled event due as if it had just come; False where its status changed meanwhile."""
    statement = (
        sa.update(inbox_events)
        .where(_table.id == row["id"], _table.status == row["status"], _table.lease_token.is_(None))
        .values(
            status=str(InboxStatus.ACCEPTED),
            reason=None,
            next_try_at=tx.now,
            processed_at=None,
            parked_until=None,
            tries=0,
            failures=0,
        )
    )
    return tx.execute(statement).rowcount == 1


def _conditions(wanted: EventFilter) -> list[sa.ColumnElement[bool]]:
    pairs = (
        (_table.status, wanted.status),
        (_table.provider, wanted.provider),
        (_table.job_id, wanted.job_id),
        (_table.delivery_id, wanted.delivery_id),
    )
    return [column == value for column, value in pairs if value is not None]
