"""Statements on ``extra_runs``: runs that were billed beside the one their job follows.

A row is open while ``next_check_at`` is set. Every claim writes a fresh token, and every later write repeats it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from jobs.ids import new_id, new_token
from jobs.storage.artifacts import later_after
from jobs.storage.database import Transaction
from jobs.storage.jobs import Row
from jobs.storage.schema import extra_runs as runs


def insert_extra_run(tx: Transaction, *, job_id: str, attempt: int, provider: str, run: str) -> None:
    """Keeps an extra run, due to be looked at now; one that is known already stays as it is."""
    row = {
        "id": new_id("xr", at=tx.now),
        "job_id": job_id,
        "attempt": attempt,
        "provider": provider,
        "provider_job_id": run,
        "tries": 0,
        "next_check_at": tx.now,
        "found_at": tx.now,
    }
    insert = sqlite.insert if tx.is_sqlite else postgresql.insert
    tx.execute(insert(runs).values(row).on_conflict_do_nothing())


def find_extra_run(tx: Transaction, provider: str, run: str) -> Row | None:
    """What is known of a run as an extra one; locked until the transaction ends."""
    mine = sa.and_(runs.c.provider == provider, runs.c.provider_job_id == run)
    return tx.row(sa.select(runs).where(mine).with_for_update())


def find_extra_run_by_id(tx: Transaction, row_id: str) -> Row | None:
    """A row, not locked."""
    return tx.row(sa.select(runs).where(runs.c.id == row_id))


def has_due_extra_runs(tx: Transaction) -> bool:
    """Whether any is due and free; costs one look at the index."""
    return tx.row(sa.select(runs.c.id).where(_is_due(tx.now)).limit(1)) is not None


def claim_extra_runs(tx: Transaction, limit: int, *, until: datetime) -> list[tuple[str, str]]:
    """Claims due rows that nobody holds, longest due first: (id, lease token) of each."""
    due = sa.select(runs.c.id).where(_is_due(tx.now)).order_by(runs.c.next_check_at).limit(limit)
    claims = [(row["id"], new_token()) for row in tx.rows(due.with_for_update(skip_locked=True))]
    for row_id, token in claims:
        statement = sa.update(runs).where(runs.c.id == row_id, _is_due(tx.now))
        tx.execute(statement.values(lease_token=token, lease_until=until))
    return claims


def take_extra_run(tx: Transaction, row_id: str, *, held: str | None, until: datetime) -> Row | None:
    """Takes a row on under a token of its own, and counts the start; None where it is not ours to work on.

    Args:
        tx: The open transaction.
        row_id: The row.
        held: The token of the message; None takes a due row that nobody holds.
        until: When the lease ends.
    """
    mine = _is_due(tx.now)
    if held is not None:
        mine = sa.and_(runs.c.lease_token == held, runs.c.lease_until > tx.now, runs.c.next_check_at.is_not(None))
    counted = {"tries": runs.c.tries + 1, "starts": runs.c.starts + 1}
    due_at = later_after(runs.c.starts, runs.c.next_check_at, now=tx.now, lease=until - tx.now)
    taken = {"lease_token": new_token(), "lease_until": until, "next_check_at": due_at, **counted}
    if tx.execute(sa.update(runs).where(runs.c.id == row_id, mine).values(taken)).rowcount != 1:
        return None
    return tx.row(sa.select(runs).where(runs.c.id == row_id))


def end_extra_run(tx: Transaction, row: Row, changes: Mapping[str, Any]) -> bool:
    """Gives the lease back with what was learned; False where it had been lost, and nothing was written."""
    mine = sa.and_(runs.c.id == row["id"], runs.c.lease_token == row["lease_token"])
    released = {"lease_token": None, "lease_until": None, "starts": 0, **changes}
    return tx.execute(sa.update(runs).where(mine).values(released)).rowcount == 1


def rearm_extra_run(tx: Transaction, row_id: str) -> None:
    """Makes a row due again that has not seen its run end, with its tries anew."""
    fresh = {"tries": 0, "starts": 0, "next_check_at": tx.now, "settled": None, "settled_at": None, "reason": None}
    tx.execute(sa.update(runs).where(runs.c.id == row_id, runs.c.settled.is_distinct_from("ended")).values(fresh))


def leave_extra_run(tx: Transaction, provider: str, run: str, *, reason: str) -> None:
    """Settles an open row without its run's end; whoever works on it finds its lease gone."""
    left = {"settled": "left", "settled_at": tx.now, "reason": reason, "next_check_at": None, "lease_token": None}
    mine = sa.and_(runs.c.provider == provider, runs.c.provider_job_id == run, runs.c.settled.is_(None))
    tx.execute(sa.update(runs).where(mine).values(left))


def _is_due(now: datetime) -> sa.ColumnElement[bool]:
    is_free = sa.or_(runs.c.lease_until.is_(None), runs.c.lease_until <= now)
    return sa.and_(runs.c.next_check_at.is_not(None), runs.c.next_check_at <= now, is_free)
