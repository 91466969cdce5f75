"""Statements of the relay: outbox rows that are committed and not yet relayed, and their positions.

A row's own number is given before its commit, so a smaller one may appear after a greater one. Rows are therefore
found by what they lack, never by "greater than the last"; and ``position`` is given here, after the commit.

A row of which a relay has died is a suspect: its starts are counted, and each is a transaction of its own.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, OperationalError

from jobs.core.errors import Stale
from jobs.storage.bulk import update_rows
from jobs.storage.database import Transaction
from jobs.storage.schema import outbox

POSITION = "outbox_position"

#: Committed, and neither relayed nor set aside.
IS_WAITING = sa.and_(outbox.c.relayed_at.is_(None), outbox.c.parked_at.is_(None))
_COLUMNS = (
    outbox.c.row_id,
    outbox.c.id,
    outbox.c.tenant,
    outbox.c.type,
    outbox.c.job_id,
    outbox.c.provider,
    outbox.c.occurred_at,
    outbox.c.relay_tries,
)


_IS_SUSPECT = outbox.c.relay_starts > 0


def has_unrelayed(tx: Transaction) -> bool:
    """Whether there is anything to relay now; costs one look at the partial index."""
    due = sa.or_(~_IS_SUSPECT, outbox.c.relay_at <= tx.now)
    return tx.row(sa.select(outbox.c.row_id).where(IS_WAITING, due).limit(1)) is not None


def has_suspects(tx: Transaction) -> bool:
    """Whether any suspect is due."""
    due = sa.select(outbox.c.row_id).where(IS_WAITING, _IS_SUSPECT, outbox.c.relay_at <= tx.now).limit(1)
    return tx.row(due) is not None


def count_batch(tx: Transaction, limit: int, *, until: datetime) -> list[int]:
    """Counts a start of the oldest rows that are no suspects, and returns their numbers.

    Args:
        tx: The open transaction.
        limit: Rows at most.
        until: When they are due as suspects, if nothing more is heard.
    """
    oldest = sa.select(outbox.c.row_id).where(IS_WAITING, ~_IS_SUSPECT).order_by(outbox.c.row_id).limit(limit)
    started = (
        sa.update(outbox)
        .where(outbox.c.row_id.in_(oldest.scalar_subquery()), IS_WAITING, ~_IS_SUSPECT)
        .values(relay_starts=1, relay_at=until)
        .returning(outbox.c.row_id)
    )
    return sorted(row.row_id for row in tx.execute(started))


def find_suspect(tx: Transaction) -> dict[str, Any] | None:
    """The oldest suspect that is due, locked until the transaction ends."""
    due = sa.select(*_COLUMNS, outbox.c.relay_starts).where(IS_WAITING, _IS_SUSPECT, outbox.c.relay_at <= tx.now)
    return tx.row(due.order_by(outbox.c.row_id).limit(1).with_for_update(skip_locked=True))


def count_start(tx: Transaction, row_id: int, *, until: datetime) -> None:
    """Counts a start of a suspect, which is not due again before ``until``."""
    changes = {"relay_starts": outbox.c.relay_starts + 1, "relay_at": until}
    tx.execute(sa.update(outbox).where(outbox.c.row_id == row_id, IS_WAITING).values(changes))


def list_unrelayed(
    tx: Transaction, limit: int, *, without: Collection[int] = (), among: Collection[int] | None = None
) -> list[dict[str, Any]]:
    """Committed rows that wait to be relayed, oldest first; suspects only where they are asked for.

    Args:
        tx: The open transaction, which holds the position's counter.
        limit: Rows at most.
        without: Row numbers to leave out.
        among: Row numbers whose starts have been counted; None: whatever is no suspect.

    Returns:
        The rows without their data; ``is_readable`` says whether that is JSON at all.
    """
    # PostgreSQL refuses to store what is not JSON; in SQLite the column is text.
    readable = sa.func.json_valid(outbox.c.data) if tx.is_sqlite else sa.true()
    wanted = ~_IS_SUSPECT if among is None else outbox.c.row_id.in_(sorted(among))
    statement = (
        sa.select(*_COLUMNS, readable.label("is_readable"))
        .where(IS_WAITING, wanted, _is_none_of(tx, without))
        .order_by(outbox.c.row_id)
        .limit(limit)
    )
    return tx.rows(statement)


def _is_none_of(tx: Transaction, row_ids: Collection[int]) -> sa.ColumnElement[bool]:
    """One parameter for all of them: a database takes some ten thousands, and a bad day has more rows that fail."""
    if not row_ids:
        return sa.true()
    if tx.is_sqlite:
        listed = sa.func.json_each(json.dumps(sorted(row_ids))).table_valued("value")
        return outbox.c.row_id.not_in(sa.select(listed.c.value))
    return outbox.c.row_id != sa.all_(sa.literal(sorted(row_ids), sa.ARRAY(sa.BigInteger)))


def mark_relayed(tx: Transaction, positions: Sequence[tuple[int, int]]) -> None:
    """Gives rows their positions.

    Args:
        tx: The open transaction.
        positions: (row number, position) of each.

    Raises:
        Stale: One of them has been relayed or parked since it was listed.
    """
    seen = [{"row_id": row} for row, _ in positions]
    given = [{"position": at, "relayed_at": tx.now} for _, at in positions]
    if update_rows(tx, outbox, seen, given, unset=("relayed_at", "parked_at")) != len(positions):
        raise Stale("an event was relayed or parked by somebody else")


def count_relay_try(tx: Transaction, row_id: int) -> int:
    """Counts a try that failed, and returns how many have. It came to its end: the row is no suspect."""
    statement = (
        sa.update(outbox)
        .where(outbox.c.row_id == row_id, IS_WAITING)
        .values(relay_tries=outbox.c.relay_tries + 1, relay_starts=0, relay_at=None)
        .returning(outbox.c.relay_tries)
    )
    return int(tx.execute(statement).scalar_one())


def park(tx: Transaction, row_id: int) -> None:
    """Sets a row aside: it gets no position, and nobody waits behind it."""
    tx.execute(sa.update(outbox).where(outbox.c.row_id == row_id, IS_WAITING).values(parked_at=tx.now))


def unpark(tx: Transaction, event_id: str) -> bool:
    """Gives a parked event its tries anew, for a redrive; False where it is not parked."""
    parked = sa.and_(outbox.c.id == event_id, outbox.c.parked_at.is_not(None))
    fresh = {"parked_at": None, "relay_tries": 0, "relay_starts": 0, "relay_at": None}
    return tx.execute(sa.update(outbox).where(parked).values(fresh)).rowcount == 1


def find_event(tx: Transaction, event_id: str) -> dict[str, Any] | None:
    """A whole event, or None where it has been erased."""
    return tx.row(sa.select(outbox).where(outbox.c.id == event_id))


def is_rows_own_fault(error: Exception) -> bool:
    """Whether an error says something about the rows, and not about the database or about a rival."""
    if isinstance(error, Stale | OperationalError):
        return False
    return not (isinstance(error, DBAPIError) and error.connection_invalidated)
