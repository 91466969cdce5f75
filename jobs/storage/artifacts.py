"""Statements on ``artifacts``: result files, and the work of fetching them.

A row is due while ``next_fetch_at`` is set. Every claim writes a fresh token, and every later write repeats it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from jobs.core.errors import NotFound
from jobs.ids import new_id, new_token
from jobs.storage.database import Transaction
from jobs.storage.jobs import Row
from jobs.storage.metadata import Instant
from jobs.storage.schema import artifacts


def artifact_rows(job: Row, links: Sequence[Row], *, attempt: int, at: datetime) -> list[Row]:
    """Rows in the making, due now: one for each file a success names."""
    shared = {"job_id": job["id"], "tenant": job["tenant"], "provider": job["provider"], "attempt": attempt}
    blank = dict.fromkeys(("content_type", "size_bytes", "sha256", "reason"))
    counters = dict.fromkeys(("starts", "tries", "refreshes"), 0)
    return [
        {
            "id": new_id("art", at=at),
            **shared,
            **blank,
            **counters,
            "position": position,
            "state": "pending",
            "link": dict(link),
            "next_fetch_at": at,
            "created_at": at,
        }
        for position, link in enumerate(links)
    ]


def insert_artifacts(tx: Transaction, rows: Sequence[Row]) -> None:
    """Writes new rows."""
    if rows:
        tx.execute(sa.insert(artifacts), [dict(row) for row in rows])


def find_artifact(tx: Transaction, artifact_id: str) -> Row | None:
    """A row, not locked."""
    return tx.row(sa.select(artifacts).where(artifacts.c.id == artifact_id))


def get_artifact(tx: Transaction, artifact_id: str, *, tenant: str) -> Row:
    """A row.

    Raises:
        NotFound: There is none, or it is another tenant's.
    """
    row = find_artifact(tx, artifact_id)
    if row is None or row["tenant"] != tenant:
        raise NotFound(f"there is no artifact {artifact_id!r}")
    return row


def list_artifacts(tx: Transaction, job_id: str, *, attempt: int | None = None) -> list[Row]:
    """A job's files, or those of one of its attempts, in the provider's order."""
    statement = sa.select(artifacts).where(artifacts.c.job_id == job_id)
    if attempt is not None:
        statement = statement.where(artifacts.c.attempt == attempt)
    return list(tx.rows(statement.order_by(artifacts.c.attempt, artifacts.c.position)))


def has_due_artifacts(tx: Transaction) -> bool:
    """Whether any is due and free; costs one look at the index."""
    return tx.row(sa.select(artifacts.c.id).where(_is_due(tx.now)).limit(1)) is not None


def claim_artifacts(tx: Transaction, limit: int, *, until: datetime) -> list[tuple[str, str]]:
    """Claims due rows that nobody holds, longest due first: (id, lease token) of each."""
    due = sa.select(artifacts.c.id).where(_is_due(tx.now)).order_by(artifacts.c.next_fetch_at).limit(limit)
    claims = [(row["id"], new_token()) for row in tx.rows(due.with_for_update(skip_locked=True))]
    for artifact_id, token in claims:
        statement = sa.update(artifacts).where(artifacts.c.id == artifact_id, _is_due(tx.now))
        tx.execute(statement.values(lease_token=token, lease_until=until))
    return claims


def take_artifact(tx: Transaction, artifact_id: str, *, held: str | None, until: datetime) -> Row | None:
    """Takes a row on under a token of its own, and counts the start; None where it is not ours to work on.

    Args:
        tx: The open transaction.
        artifact_id: The row.
        held: The token of the message; None takes a due row that nobody holds.
        until: When the lease ends.
    """
    mine = _is_due(tx.now)
    if held is not None:
        is_held = (artifacts.c.lease_token == held, artifacts.c.lease_until > tx.now)
        mine = sa.and_(*is_held, artifacts.c.next_fetch_at.is_not(None))
    taken = {
        "lease_token": new_token(),
        "lease_until": until,
        "starts": artifacts.c.starts + 1,
        "next_fetch_at": later_after(artifacts.c.starts, artifacts.c.next_fetch_at, now=tx.now, lease=until - tx.now),
    }
    if tx.execute(sa.update(artifacts).where(artifacts.c.id == artifact_id, mine).values(taken)).rowcount != 1:
        return None
    return find_artifact(tx, artifact_id)


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


def keep_artifact(tx: Transaction, row: Row, *, until: datetime) -> bool:
    """Renews the lease; False where it had been lost."""
    return tx.execute(sa.update(artifacts).where(_is_mine(row)).values(lease_until=until)).rowcount == 1


def end_artifact(tx: Transaction, row: Row, changes: Mapping[str, Any]) -> bool:
    """Gives the lease back with what came of the fetch; False where it had been lost, and nothing was written."""
    released = {"lease_token": None, "lease_until": None, "starts": 0, **changes}
    return tx.execute(sa.update(artifacts).where(_is_mine(row)).values(released)).rowcount == 1


def rearm_artifact(tx: Transaction, artifact_id: str) -> bool:
    """Makes a file due again that was not stored, with its tries anew; says whether it did."""
    fresh = {"state": "pending", "reason": None, "settled_at": None, "next_fetch_at": tx.now}
    counters = dict.fromkeys(("starts", "tries", "refreshes"), 0)
    again = sa.and_(artifacts.c.id == artifact_id, artifacts.c.state.in_(("rejected", "expired")))
    return tx.execute(sa.update(artifacts).where(again).values({**fresh, **counters})).rowcount == 1


def _is_mine(row: Row) -> sa.ColumnElement[bool]:
    return sa.and_(artifacts.c.id == row["id"], artifacts.c.lease_token == row["lease_token"])


def _is_due(now: datetime) -> sa.ColumnElement[bool]:
    is_free = sa.or_(artifacts.c.lease_until.is_(None), artifacts.c.lease_until <= now)
    return sa.and_(artifacts.c.next_fetch_at.is_not(None), artifacts.c.next_fetch_at <= now, is_free)
