"""Statements on ``handler_runs``: one event for one Python handler, with its tries, its due time and its lease.

A run is open while ``next_try_at`` is set. Every claim writes a fresh token, and every later write repeats it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from jobs.ids import new_token
from jobs.storage.database import Transaction
from jobs.storage.schema import handler_runs as runs


class Claimed(NamedTuple):
    """A run that is ours until its lease ends; the token goes into the message and is consumed by its task."""

    run_id: int
    token: str


def insert_runs(tx: Transaction, wanted: Sequence[tuple[str, str]], *, until: datetime) -> list[Claimed]:
    """Opens runs, claimed for the messages that will announce them.

    Args:
        tx: The open transaction.
        wanted: (event id, handler name) of each; one that exists already is left alone.
        until: When a sweep may take a run whose message got lost.
    """
    if not wanted:
        return []
    statement = tx.insert(runs).on_conflict_do_nothing().returning(runs.c.id, runs.c.lease_token)
    rows = [
        {
            "event_id": event_id,
            "handler": handler,
            "tries": 0,
            "next_try_at": tx.now,
            "lease_token": new_token(),
            "lease_until": until,
        }
        for event_id, handler in wanted
    ]
    return [Claimed(row.id, row.lease_token) for row in tx.execute(statement, rows)]


def claim_due(tx: Transaction, limit: int, *, until: datetime) -> list[Claimed]:
    """Claims due runs that nobody holds, longest due first; rows another sweep has locked are skipped."""
    due = (
        sa.select(runs.c.id)
        .where(runs.c.next_try_at.is_not(None), runs.c.next_try_at <= tx.now, _is_free(tx.now))
        .order_by(runs.c.next_try_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    claims = [Claimed(row["id"], new_token()) for row in tx.rows(due)]
    if claims:
        statement = (
            sa.update(runs)
            .where(runs.c.id == sa.bindparam("this_run"), _is_free(tx.now))
            .values(lease_token=sa.bindparam("this_token"), lease_until=until)
        )
        tx.execute(statement, [{"this_run": run_id, "this_token": token} for run_id, token in claims])
    return claims


def find_run(tx: Transaction, run_id: int) -> dict[str, Any] | None:
    """A run, locked until the transaction ends, or None where there is none."""
    return tx.row(sa.select(runs).where(runs.c.id == run_id).with_for_update())


def consume(tx: Transaction, run_id: int, *, held: str | None, changes: dict[str, Any]) -> bool:
    """Swaps a claim for the work itself; a second copy of the message finds the token gone.

    Args:
        tx: The open transaction.
        run_id: The run.
        held: The token of the message; None claims a due run that nobody holds.
        changes: The new lease, the counted try, and when to try again if nothing more is heard.
    """
    if held is None:
        mine = sa.and_(runs.c.next_try_at <= tx.now, _is_free(tx.now))
    else:
        mine = sa.and_(runs.c.lease_token == held, runs.c.lease_until > tx.now)
    statement = sa.update(runs).where(runs.c.id == run_id, runs.c.next_try_at.is_not(None), mine)
    return tx.execute(statement.values(changes)).rowcount == 1


def update_held(tx: Transaction, run_id: int, *, held: str, changes: dict[str, Any]) -> bool:
    """Writes to an open run under the lease it was claimed with; False where that lease has passed on."""
    mine = sa.and_(runs.c.id == run_id, runs.c.lease_token == held, runs.c.next_try_at.is_not(None))
    return tx.execute(sa.update(runs).where(mine).values(changes)).rowcount == 1


def rearm(tx: Transaction, run_id: int) -> bool:
    """Gives a dead run its tries anew, for a redrive; False where it is done or still open."""
    dead = sa.and_(runs.c.id == run_id, runs.c.done_at.is_(None), runs.c.next_try_at.is_(None))
    counters = {"tries": 0, "starts": 0}
    fresh = {**counters, "next_try_at": tx.now, "lease_token": None, "lease_until": None, "first_failed_at": None}
    return tx.execute(sa.update(runs).where(dead).values(fresh)).rowcount == 1


def _is_free(now: datetime) -> sa.ColumnElement[bool]:
    return sa.or_(runs.c.lease_until.is_(None), runs.c.lease_until <= now)
