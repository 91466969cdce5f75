"""The workers' statements on the inbox: claim by lease, settle under it, wake what was parked.

A claim writes the lease's end into ``next_try_at``: a worker that dies leaves its rows due again. ``tries`` is counted
by the claim, before any work begins; so a row that kills its worker is known by starts that never ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from operator import attrgetter
from typing import Any

import sqlalchemy as sa

from jobs.core.errors import Stale
from jobs.storage.bulk import select_rows, update_rows
from jobs.storage.database import Transaction
from jobs.storage.jobs import Row
from jobs.storage.metadata import Instant
from webhooks.incoming.schema import InboxStatus, inbox_events

#: A batch takes well under a second; a worker that hangs on a lock gives up before this.
LEASE = timedelta(seconds=15)

_table = inbox_events.c
_SIZE = sa.func.length(_table.raw).label("size_bytes")
#: Bodies are loaded when they are worked on: a full batch of the largest ones would fill the memory.
_CLAIMED = (*(column for column in _table if column.name != "raw"), _SIZE)


@dataclass(frozen=True, slots=True)
class Settlement:
    """What became of a claimed row; the columns have the same names."""

    event_id: str
    status: InboxStatus
    reason: str | None = None
    job_id: str | None = None
    tenant: str | None = None
    provider_job_id: str | None = None
    tries: int = 0
    failures: int = 0
    next_try_at: datetime | None = None
    parked_until: datetime | None = None
    first_failed_at: datetime | None = None


class Wanted(Enum):
    """Which due rows a claim asks for."""

    FRESH = "fresh"  # never begun, or ended in good order; one that is locked is left to whoever holds it
    UNFINISHED = "unfinished"  # the last start never ended: claimed apart, for one may be what killed its worker
    WAITED_FOR = "waited for"  # as fresh, but a lock is waited for: a repeat that is being counted must not hide a row


def claim_due(tx: Transaction, *, token: str, limit: int) -> list[dict[str, Any]]:
    """Claims rows that are due, longest due first; where no new one is, one whose last start never ended.

    Args:
        tx: The open transaction.
        token: A fresh lease token.
        limit: Rows at most.
    """
    return (
        _claim_due(tx, Wanted.FRESH, token=token, limit=limit)
        or _claim_due(tx, Wanted.UNFINISHED, token=token, limit=1)
        or _claim_due(tx, Wanted.WAITED_FOR, token=token, limit=limit)
    )


def has_due(tx: Transaction) -> bool:
    """Whether any row is due; costs one look at the index, which PostgreSQL takes for its order."""
    due = sa.select(_table.id).where(_table.next_try_at.is_not(None), _table.next_try_at <= tx.sql_now)
    return tx.row(due.order_by(_table.next_try_at).limit(1)) is not None


def claim_rows(tx: Transaction, event_ids: Sequence[str], *, token: str) -> list[dict[str, Any]]:
    """Claims certain rows, due or not, that wait and that nobody works on."""
    is_free = sa.or_(_table.lease_token.is_(None), _table.next_try_at <= tx.now)
    return _claim(tx, _table.id.in_(event_ids), is_free, token=token, limit=len(event_ids), waiting=True)


def _claim_due(tx: Transaction, wanted: Wanted, *, token: str, limit: int) -> list[dict[str, Any]]:
    never_ended = _table.tries > _table.failures
    kind = never_ended if wanted is Wanted.UNFINISHED else ~never_ended
    waiting = wanted is Wanted.WAITED_FOR
    return _claim(tx, _table.next_try_at <= tx.now, kind, token=token, limit=limit, waiting=waiting)


def _claim(
    tx: Transaction, *conditions: sa.ColumnElement[bool], token: str, limit: int, waiting: bool
) -> list[dict[str, Any]]:
    due = (
        sa.select(_table.id)
        .where(_table.next_try_at.is_not(None), *conditions)
        .order_by(_table.next_try_at, _table.id)
        .limit(limit)
        .with_for_update(skip_locked=not waiting)
        .cte("due")
    )
    statement = (
        sa.update(inbox_events)
        .where(_table.id.in_(sa.select(due.c.id)))
        .values(lease_token=token, next_try_at=_lease_end(tx.now), tries=_table.tries + 1)
        .returning(*_CLAIMED)
    )
    return sorted(tx.rows(statement), key=lambda row: (row["received_at"], str(row["id"])))


def _lease_end(now: datetime) -> sa.ColumnElement[datetime]:
    """When a row whose start never ends is due again: later each time, for each may take a worker along."""
    unfinished = _table.tries - _table.failures
    ends = [(unfinished >= count, sa.literal(now + LEASE * 2**count, Instant())) for count in (2, 1)]
    return sa.case(*ends, else_=sa.literal(now + LEASE, Instant()))


def load_raw(tx: Transaction, event_ids: Sequence[str]) -> dict[str, bytes]:
    """The bodies of some rows."""
    return {row["id"]: bytes(row["raw"]) for row in select_rows(tx, (_table.id, _table.raw), _table.id, event_ids)}


def settle(tx: Transaction, settlements: Sequence[Settlement], *, token: str) -> None:
    """Writes what became of claimed rows, and frees them.

    Raises:
        Stale: One of them has passed to another worker meanwhile; nothing may be kept of this transaction.
    """
    in_order = sorted(settlements, key=attrgetter("event_id"))
    held = [{"id": settlement.event_id, "lease_token": token} for settlement in in_order]
    if update_rows(tx, inbox_events, held, [_columns(settlement, now=tx.now) for settlement in in_order]) != len(held):
        raise Stale("an inbox row was claimed by another worker meanwhile")


def give_back(tx: Transaction, event_ids: Sequence[str], *, token: str, next_try_at: datetime) -> None:
    """Frees rows whose start came to nothing through no fault of theirs; the start is not counted."""
    statement = (
        sa.update(inbox_events)
        .where(_table.id.in_(event_ids), _table.lease_token == token)
        .values(lease_token=None, next_try_at=next_try_at, tries=_table.tries - 1)
    )
    tx.execute(statement)


def wake_rows(tx: Transaction, event_ids: Sequence[str]) -> None:
    """Makes parked rows due now."""
    tx.execute(
        sa.update(inbox_events)
        .where(_table.id.in_(event_ids), _table.status == str(InboxStatus.PARKED), _table.lease_token.is_(None))
        .values(next_try_at=tx.now)
    )


def find_parked(tx: Transaction, provider: str, provider_job_id: str) -> list[str]:
    """The parked rows that wait for a run."""
    statement = sa.select(_table.id).where(
        _table.provider == provider,
        _table.provider_job_id == provider_job_id,
        _table.status == str(InboxStatus.PARKED),
    )
    return [row["id"] for row in tx.rows(statement.order_by(_table.id))]


_SETTLED = (
    "status",
    "reason",
    "job_id",
    "tenant",
    "provider_job_id",
    "tries",
    "failures",
    "next_try_at",
    "parked_until",
    "first_failed_at",
)


def _columns(settlement: Settlement, *, now: datetime) -> Row:
    values = {name: getattr(settlement, name) for name in _SETTLED}
    return {**values, "lease_token": None, "processed_at": None if settlement.next_try_at else now}
