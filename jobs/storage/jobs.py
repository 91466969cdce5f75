"""Statements on ``jobs``. Every write repeats the premise it was decided on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

import sqlalchemy as sa

from jobs.core.errors import NotFound, Stale
from jobs.storage.bulk import select_rows, update_rows
from jobs.storage.database import Transaction
from jobs.storage.schema import jobs

Row: TypeAlias = Mapping[str, Any]

DUE_COLUMNS: Mapping[str, str] = {"submit": "next_submit_at", "poll": "next_poll_at", "cancel": "next_cancel_at"}

#: An input never changes, and may be an image: nobody who decides about many jobs needs it.
_WITHOUT_INPUT = tuple(column for column in jobs.c if column is not jobs.c.input)

NEW_JOB: Mapping[str, Any] = {
    "state": "pending",
    "version": 1,
    "attempt": 1,
    "event_count": 0,
    "failing": False,
    "submit_tries": 0,
    "poll_count": 0,
    "poll_failures": 0,
    "missing_reads": 0,
    "cancel_tries": 0,
    "starts": 0,
}


def insert_job(tx: Transaction, row: Row) -> None:
    """Writes a new job; columns of :data:`NEW_JOB` have their first values unless given."""
    tx.execute(sa.insert(jobs).values({**NEW_JOB, **row}))


def find_job(tx: Transaction, job_id: str, *, tenant: str | None = None) -> Row | None:
    """The job, or None where there is none (or another tenant's)."""
    statement = sa.select(jobs).where(jobs.c.id == job_id)
    if tenant is not None:
        statement = statement.where(jobs.c.tenant == tenant)
    return tx.row(statement)


def get_job(tx: Transaction, job_id: str, *, tenant: str | None = None) -> Row:
    """The job.

    Raises:
        NotFound: There is none, or it is another tenant's.
    """
    row = find_job(tx, job_id, tenant=tenant)
    if row is None:
        raise NotFound(f"there is no job {job_id!r}")
    return row


def lock_jobs(tx: Transaction, job_ids: Iterable[str]) -> dict[str, Row]:
    """The jobs, without their inputs, locked in the order of their ids, which is the lock order everywhere.

    On SQLite the writer lock is held already; on PostgreSQL the rows are locked until the transaction ends.
    """
    return {row["id"]: row for row in select_rows(tx, _WITHOUT_INPUT, jobs.c.id, job_ids, lock=True)}


def list_tenants(tx: Transaction, job_ids: Iterable[str]) -> dict[str, str]:
    """Whose some jobs are."""
    return {row["id"]: row["tenant"] for row in select_rows(tx, (jobs.c.id, jobs.c.tenant), jobs.c.id, job_ids)}


def lock_job(tx: Transaction, job_id: str) -> Row:
    """One job, whole, locked.

    Raises:
        NotFound: There is none.
    """
    for row in select_rows(tx, tuple(jobs.c), jobs.c.id, [job_id], lock=True):
        return row
    raise NotFound(f"there is no job {job_id!r}")


def update_job(tx: Transaction, seen: Row, changes: Row, *, steps: int = 1) -> Row:
    """Writes what outsiders can see; the version grows.

    Args:
        tx: The open transaction.
        seen: The row the decision was made on.
        changes: Columns to write, and only these.
        steps: How many changes these are, one after another; the version grows by as many.

    Returns:
        The row afterwards.

    Raises:
        Stale: The row has changed since it was seen; read it again and decide again.
    """
    after = {**_plain(changes), "version": seen["version"] + steps}
    statement = sa.update(jobs).where(jobs.c.id == seen["id"], jobs.c.version == seen["version"]).values(after)
    if tx.execute(statement).rowcount != 1:
        raise Stale(f"job {seen['id']} changed since version {seen['version']}")
    return {**seen, **after}


class JobUpdate(NamedTuple):
    """What to write to one job: the row it was decided on, the columns, and how many changes they stand for."""

    seen: Row
    changes: Row
    steps: int


def update_jobs(tx: Transaction, updates: Sequence[JobUpdate]) -> None:
    """The same for many jobs, a statement for each set of columns.

    Raises:
        Stale: One of the rows has changed since it was seen; the caller rolls all of them back.
    """
    groups: dict[frozenset[str], list[JobUpdate]] = {}
    for update in updates:
        groups.setdefault(frozenset(update.changes), []).append(update)
    for members in groups.values():
        seen = [{"id": update.seen["id"], "version": update.seen["version"]} for update in members]
        after = [{**update.changes, "version": update.seen["version"] + update.steps} for update in members]
        if update_rows(tx, jobs, seen, after) != len(members):
            raise Stale(f"one of {len(members)} jobs changed since it was read")


def _plain(changes: Row) -> dict[str, Any]:
    """Enumerations as their text: psycopg would write a member's *name*, not its value."""
    return {name: str(value) if isinstance(value, StrEnum) else value for name, value in changes.items()}


def update_bookkeeping(tx: Transaction, job_id: str, changes: Row, *premise: sa.ColumnElement[bool]) -> bool:
    """Writes what only Homing sees (due times, tries, leases); the version stays.

    Args:
        tx: The open transaction.
        job_id: The job.
        changes: Columns to write.
        premise: Conditions that must still hold.

    Returns:
        Whether the premise held and the row was written.
    """
    statement = sa.update(jobs).where(jobs.c.id == job_id, *premise).values(dict(changes))
    return tx.execute(statement).rowcount == 1


def is_free(now: datetime | sa.ColumnElement[datetime]) -> sa.ColumnElement[bool]:
    """Nobody holds the job's lease."""
    return sa.or_(jobs.c.lease_until.is_(None), jobs.c.lease_until <= now)


def lease_jobs(tx: Transaction, job_ids: Sequence[str], *, token: str, until: datetime) -> set[str]:
    """Takes the leases of some jobs in one statement, under one fresh token: a lease is known by job and token.

    Returns:
        The ids whose lease was free.
    """
    statement = (
        sa.update(jobs)
        .where(jobs.c.id.in_(sorted(job_ids)), is_free(tx.now))
        .values(lease_token=token, lease_until=until)
        .returning(jobs.c.id)
    )
    return {row["id"] for row in tx.rows(statement)}


def swap_lease(tx: Transaction, job_id: str, *, held: str, fresh: str, until: datetime) -> bool:
    """Consumes a token: the first to come gets the work, a second copy of the message finds nothing."""
    changes = {"lease_token": fresh, "lease_until": until}
    return update_bookkeeping(tx, job_id, changes, jobs.c.lease_token == held, jobs.c.lease_until > tx.now)


def release_lease(tx: Transaction, job_id: str, *, held: str, changes: Row | None = None) -> bool:
    """Gives the lease back, with what was learned about due times; False where it had been lost."""
    after = {"lease_token": None, "lease_until": None, **(changes or {})}
    return update_bookkeeping(tx, job_id, after, jobs.c.lease_token == held)


def has_due_jobs(tx: Transaction, kind: str) -> bool:
    """Whether any work of a kind is due and free; costs one look at the index.

    The order has PostgreSQL take the index, however much it believes to be due; any one row it would seek in the table.
    """
    due_at, now = jobs.c[DUE_COLUMNS[kind]], tx.sql_now
    due = sa.select(jobs.c.id).where(due_at.is_not(None), due_at <= now, is_free(now))
    return tx.row(due.order_by(due_at).limit(1)) is not None


def list_ringing(tx: Transaction, *, limit: int) -> list[str]:
    """Jobs whose next alarm has come, longest ago first."""
    at = jobs.c.next_alarm_at
    statement = sa.select(jobs.c.id).where(at.is_not(None), at <= tx.now).order_by(at).limit(limit)
    return [row["id"] for row in tx.rows(statement)]
