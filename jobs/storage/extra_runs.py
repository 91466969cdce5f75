"""Statements on ``extra_runs``: runs that were billed beside the one their job follows.

A row is open while ``next_check_at`` is set. Every claim writes a fresh token, and every later write repeats it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from jobs.ids import new_id
from jobs.storage.database import Transaction
from jobs.storage.jobs import Row
from jobs.storage.leased import LeasedWork
from jobs.storage.schema import extra_runs as runs

_work = LeasedWork(runs, runs.c.next_check_at)


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
    """Whether any is due and free."""
    return _work.has_due(tx)


def claim_extra_runs(tx: Transaction, limit: int, *, until: datetime) -> list[tuple[str, str]]:
    """Claims due runs for the messages that will announce them: (id, lease token) of each."""
    return _work.claim(tx, limit, until=until)


def take_extra_run(tx: Transaction, row_id: str, *, held: str | None, until: datetime) -> Row | None:
    """Takes a run on (:meth:`LeasedWork.take`), which counts as a try too; None where it is not ours to work on."""
    return _work.take(tx, row_id, held=held, until=until, counts=("tries", "starts"))


def end_extra_run(tx: Transaction, row: Row, changes: Mapping[str, Any]) -> bool:
    """Gives the lease back with what was learned; False where it had been lost, and nothing was written."""
    return _work.end(tx, row, changes)


def rearm_extra_run(tx: Transaction, row_id: str) -> None:
    """Makes a row due again that has not seen its run end, with its tries anew."""
    fresh = {"tries": 0, "starts": 0, "next_check_at": tx.now, "settled": None, "settled_at": None, "reason": None}
    tx.execute(sa.update(runs).where(runs.c.id == row_id, runs.c.settled.is_distinct_from("ended")).values(fresh))


def leave_extra_run(tx: Transaction, provider: str, run: str, *, reason: str) -> None:
    """Settles an open row without its run's end; whoever works on it finds its lease gone."""
    left = {"settled": "left", "settled_at": tx.now, "reason": reason, "next_check_at": None, "lease_token": None}
    mine = sa.and_(runs.c.provider == provider, runs.c.provider_job_id == run, runs.c.settled.is_(None))
    tx.execute(sa.update(runs).where(mine).values(left))
