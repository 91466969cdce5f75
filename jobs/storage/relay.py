"""Statements of the relay: outbox rows that are committed and not yet relayed, and their positions.

A row's own number is given before its commit, so a smaller one may appear after a greater one. Rows are therefore
found by what they lack, never by "greater than the last"; and ``position`` is given here, after the commit.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, OperationalError

from jobs.core.errors import Stale
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


def has_unrelayed(tx: Transaction) -> bool:
    """Whether there is anything to relay; costs one look at the partial index."""
    return tx.row(sa.select(outbox.c.row_id).where(IS_WAITING).limit(1)) is not None


def list_unrelayed(tx: Transaction, limit: int, *, without: Collection[int] = ()) -> list[dict[str, Any]]:
    """Committed rows that wait to be relayed, oldest first.

    Args:
        tx: The open transaction, which holds the position's counter.
        limit: Rows at most.
        without: Row numbers to leave out.

    Returns:
        The rows without their data; ``is_readable`` says whether that is JSON at all.
    """
    # PostgreSQL refuses to store what is not JSON; in SQLite the column is text.
    readable = sa.func.json_valid(outbox.c.data) if tx.is_sqlite else sa.true()
    statement = (
        sa.select(*_COLUMNS, readable.label("is_readable"))
        .where(IS_WAITING, outbox.c.row_id.not_in(sorted(without)))
        .order_by(outbox.c.row_id)
        .limit(limit)
    )
    return tx.rows(statement)


def mark_relayed(tx: Transaction, positions: Sequence[tuple[int, int]]) -> None:
    """Gives rows their positions.

    Args:
        tx: The open transaction.
        positions: (row number, position) of each.

    Raises:
        Stale: One of them has been relayed or parked since it was listed.
    """
    statement = (
        sa.update(outbox)
        .where(outbox.c.row_id == sa.bindparam("this_row"), IS_WAITING)
        .values(position=sa.bindparam("this_position"), relayed_at=sa.bindparam("this_instant"))
    )
    sets = [{"this_row": row, "this_position": at, "this_instant": tx.now} for row, at in positions]
    if tx.execute(statement, sets).rowcount != len(sets):
        raise Stale("an event was relayed or parked by somebody else")


def count_relay_try(tx: Transaction, row_id: int) -> int:
    """Counts a try that failed, and returns how many have."""
    statement = (
        sa.update(outbox)
        .where(outbox.c.row_id == row_id, IS_WAITING)
        .values(relay_tries=outbox.c.relay_tries + 1)
        .returning(outbox.c.relay_tries)
    )
    return int(tx.execute(statement).scalar_one())


def park(tx: Transaction, row_id: int) -> None:
    """Sets a row aside: it gets no position, and nobody waits behind it."""
    tx.execute(sa.update(outbox).where(outbox.c.row_id == row_id, IS_WAITING).values(parked_at=tx.now))


def unpark(tx: Transaction, event_id: str) -> bool:
    """Gives a parked event its tries anew, for a redrive; False where it is not parked."""
    parked = sa.and_(outbox.c.id == event_id, outbox.c.parked_at.is_not(None))
    return tx.execute(sa.update(outbox).where(parked).values(parked_at=None, relay_tries=0)).rowcount == 1


def find_event(tx: Transaction, event_id: str) -> dict[str, Any] | None:
    """A whole event, or None where it has been erased."""
    return tx.row(sa.select(outbox).where(outbox.c.id == event_id))


def is_rows_own_fault(error: Exception) -> bool:
    """Whether an error says something about the rows, and not about the database or about a rival."""
    if isinstance(error, Stale | OperationalError):
        return False
    return not (isinstance(error, DBAPIError) and error.connection_invalidated)
