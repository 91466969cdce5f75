"""The workers' statements on the inbox: claim by lease, settle under it, wake what was parked.

A claim writes the lease's end into ``next_try_at``: a worker that dies leaves its rows due again. ``tries`` is counted
by the claim, before any work begins; so a row that kills its worker is known by starts that never ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from functools import cache
from operator import attrgetter, itemgetter
from typing import Any

import sqlalchemy as sa

from jobs.core.errors import Stale
from jobs.storage.bulk import select_rows, update_rows
from jobs.storage.database import Transaction
from jobs.storage.jobs import Row
from jobs.storage.metadata import Instant
from jobs.storage.prepared import Prepared
from webhooks.incoming.schema import InboxStatus, inbox_events

#: A batch takes well under a second; a worker that hangs on a lock gives up before this.
LEASE = timedelta(seconds=15)

_table = inbox_events.c
_SIZE = sa.func.length(_table.raw).label("size_bytes")
#: Bodies are loaded when they are worked on: a full batch of the largest ones would fill the memory.
_CLAIMED = (
    *(_table.id, _table.provider, _table.tenant, _table.delivery_id, _table.token, _table.scheme, _table.headers),
    *(_table.digest, _table.provider_job_id, _table.job_id, _table.status, _table.tries, _table.failures),
    *(_table.first_failed_at, _table.parked_until, _table.received_at, _SIZE),
)
_unfinished = _table.tries - _table.failures
_ends = [sa.bindparam(f"end_{count}", type_=Instant()) for count in range(3)]
_LEASE_END = sa.case((_unfinished >= 2, _ends[2]), (_unfinished >= 1, _ends[1]), else_=_ends[0])


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
    statement = _claim(_table.id.in_(event_ids), is_free, most=len(event_ids), waiting=True)
    return _in_order([{**row} for row in tx.execute(statement, _lease(token, tx.now)).mappings()])


def _claim_due(tx: Transaction, wanted: Wanted, *, token: str, limit: int) -> list[dict[str, Any]]:
    return _in_order(_due(wanted).rows(tx, now=tx.now, most=limit, **_lease(token, tx.now)))


@cache
def _due(wanted: Wanted) -> Prepared:
    never_ended = _table.tries > _table.failures
    kind = never_ended if wanted is Wanted.UNFINISHED else ~never_ended
    is_due = _table.next_try_at <= sa.bindparam("now", type_=Instant())
    most = sa.bindparam("most", type_=sa.Integer())
    return Prepared(_claim(is_due, kind, most=most, waiting=wanted is Wanted.WAITED_FOR), _CLAIMED)


def _claim(*conditions: sa.ColumnElement[bool], most: Any, waiting: bool) -> sa.Executable:
    due = (
        sa.select(_table.id)
        .where(_table.next_try_at.is_not(None), *conditions)
        .order_by(_table.next_try_at, _table.id)
        .limit(most)
        .with_for_update(skip_locked=not waiting)
        .cte("due")
    )
    return (
        sa.update(inbox_events)
        .where(_table.id.in_(sa.select(due.c.id)))
        .values(lease_token=sa.bindparam("lease", type_=sa.Text()), next_try_at=_LEASE_END, tries=_table.tries + 1)
        .returning(*_CLAIMED)
    )


def _in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=itemgetter("received_at", "id"))


def _lease(token: str, now: datetime) -> dict[str, Any]:
    """A lease whose start never ends is due again later each time, for each may take a worker along."""
    return {"lease": token, **{f"end_{count}": now + LEASE * 2**count for count in range(3)}}


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
