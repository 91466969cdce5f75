"""Rows that are work: due at an instant, held for a while by whoever claimed them, counted when begun.

Every claim writes a fresh token, and every later write repeats it: two who work on one row are told apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from jobs.ids import new_token
from jobs.storage.database import Transaction
from jobs.storage.jobs import Row
from jobs.storage.metadata import Instant


@dataclass(frozen=True, slots=True)
class LeasedWork:
    """Statements on one table of such rows.

    Attributes:
        table: With columns ``id``, ``lease_token``, ``lease_until`` and ``starts``.
        due_at: Its column that says when; empty: nothing is to be done.
    """

    table: sa.Table
    due_at: sa.Column[datetime]

    def has_due(self, tx: Transaction) -> bool:
        """Whether any is due and free; costs one look at the index."""
        return tx.row(sa.select(self.table.c.id).where(self._is_due(tx.now)).limit(1)) is not None

    def claim(self, tx: Transaction, limit: int, *, until: datetime) -> list[tuple[str, str]]:
        """Claims due rows that nobody holds, longest due first: (id, lease token) of each."""
        due = sa.select(self.table.c.id).where(self._is_due(tx.now)).order_by(self.due_at).limit(limit)
        claims = [(row["id"], new_token()) for row in tx.rows(due.with_for_update(skip_locked=True))]
        for row_id, token in claims:
            statement = sa.update(self.table).where(self.table.c.id == row_id, self._is_due(tx.now))
            tx.execute(statement.values(lease_token=token, lease_until=until))
        return claims

    def take(
        self, tx: Transaction, row_id: str, *, held: str | None, until: datetime, counts: tuple[str, ...] = ("starts",)
    ) -> Row | None:
        """Takes a row on under a token of its own, and counts the start; None where it is not ours to work on.

        Args:
            tx: The open transaction.
            row_id: The row.
            held: The token of the message; None takes a due row that nobody holds.
            until: When the lease ends.
            counts: The columns that count starts.
        """
        columns = self.table.c
        mine = self._is_due(tx.now)
        if held is not None:
            is_held = (columns.lease_token == held, columns.lease_until > tx.now)
            mine = sa.and_(*is_held, self.due_at.is_not(None))
        again_at = later_after(columns.starts, self.due_at, now=tx.now, lease=until - tx.now)
        taken = {"lease_token": new_token(), "lease_until": until, self.due_at.name: again_at}
        taken |= {name: columns[name] + 1 for name in counts}
        if tx.execute(sa.update(self.table).where(columns.id == row_id, mine).values(taken)).rowcount != 1:
            return None
        return tx.row(sa.select(self.table).where(columns.id == row_id))

    def keep(self, tx: Transaction, row: Row, *, until: datetime) -> bool:
        """Renews the lease; False where it had been lost."""
        return tx.execute(sa.update(self.table).where(self._is_mine(row)).values(lease_until=until)).rowcount == 1

    def end(self, tx: Transaction, row: Row, changes: Mapping[str, Any]) -> bool:
        """Gives the lease back with what came of the work; False where it had been lost, and nothing was written."""
        released = {"lease_token": None, "lease_until": None, "starts": 0, **changes}
        return tx.execute(sa.update(self.table).where(self._is_mine(row)).values(released)).rowcount == 1

    def _is_mine(self, row: Row) -> sa.ColumnElement[bool]:
        return sa.and_(self.table.c.id == row["id"], self.table.c.lease_token == row["lease_token"])

    def _is_due(self, now: datetime) -> sa.ColumnElement[bool]:
        until = self.table.c.lease_until
        is_free = sa.or_(until.is_(None), until <= now)
        return sa.and_(self.due_at.is_not(None), self.due_at <= now, is_free)


def later_after(
    starts: sa.Column[int], due_at: sa.Column[datetime], *, now: datetime, lease: timedelta
) -> sa.ColumnElement[datetime]:
    """When a row is due again if the start that is being counted never ends: later each time.

    Args:
        starts: How many before it never did.
        due_at: As it is; the first of them waits for its lease alone.
        now: By the database's clock.
        lease: Of this start.
    """
    waits = [(starts >= count, sa.literal(now + lease * 2**count, Instant())) for count in (2, 1)]
    return sa.case(*waits, else_=due_at)
