"""Statements on ``artifacts``: result files, and the work of fetching them.

A row is due while ``next_fetch_at`` is set. Every claim writes a fresh token, and every later write repeats it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from jobs.core.errors import NotFound
from jobs.ids import new_id
from jobs.storage.database import Transaction
from jobs.storage.jobs import Row
from jobs.storage.leased import LeasedWork
from jobs.storage.schema import artifacts

_work = LeasedWork(artifacts, artifacts.c.next_fetch_at)


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
    """Whether any is due and free."""
    return _work.has_due(tx)


def claim_artifacts(tx: Transaction, limit: int, *, until: datetime) -> list[tuple[str, str]]:
    """Claims due files for the messages that will announce them: (id, lease token) of each."""
    return _work.claim(tx, limit, until=until)


def take_artifact(tx: Transaction, artifact_id: str, *, held: str | None, until: datetime) -> Row | None:
    """Takes a file on (:meth:`LeasedWork.take`); None where it is not ours to fetch."""
    return _work.take(tx, artifact_id, held=held, until=until)


def keep_artifact(tx: Transaction, row: Row, *, until: datetime) -> bool:
    """Renews the lease; False where it had been lost."""
    return _work.keep(tx, row, until=until)


def end_artifact(tx: Transaction, row: Row, changes: Mapping[str, Any]) -> bool:
    """Gives the lease back with what came of the fetch; False where it had been lost, and nothing was written."""
    return _work.end(tx, row, changes)


def rearm_artifact(tx: Transaction, artifact_id: str) -> bool:
    """Makes a file due again that was not stored, with its tries anew; says whether it did."""
    fresh = {"state": "pending", "reason": None, "settled_at": None, "next_fetch_at": tx.now}
    counters = dict.fromkeys(("starts", "tries", "refreshes"), 0)
    again = sa.and_(artifacts.c.id == artifact_id, artifacts.c.state.in_(("rejected", "expired")))
    return tx.execute(sa.update(artifacts).where(again).values({**fresh, **counters})).rowcount == 1
