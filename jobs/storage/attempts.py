"""Statements on ``job_attempts``: one row per submit of a job, with its key and its callback token."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from jobs.core.errors import NotFound
from jobs.ids import new_id, new_token
from jobs.storage.database import Transaction
from jobs.storage.jobs import Row
from jobs.storage.schema import job_attempts


def insert_attempt(tx: Transaction, *, job_id: str, provider: str, number: int, at: datetime) -> Row:
    """Opens an attempt with a key and a token of its own (I6)."""
    row = {
        "id": new_id("att", at=at),
        "job_id": job_id,
        "number": number,
        "provider": provider,
        "idempotency_key": f"homing-{new_token()}",
        "token": new_token(),
        "tries": 0,
        "asks": 0,
        "created_at": at,
    }
    tx.execute(sa.insert(job_attempts).values(row))
    return {**dict.fromkeys(column.name for column in job_attempts.c), **row}


def get_attempt(tx: Transaction, job_id: str, number: int) -> Row:
    """One attempt of a job.

    Raises:
        NotFound: The job has no such attempt.
    """
    row = _one(tx, job_attempts.c.job_id == job_id, job_attempts.c.number == number)
    if row is None:
        raise NotFound(f"job {job_id} has no attempt {number}")
    return row


def find_attempt_by_token(tx: Transaction, provider: str, token: str) -> Row | None:
    """The attempt a callback URL belongs to."""
    return _one(tx, job_attempts.c.provider == provider, job_attempts.c.token == token)


def find_attempt_by_run(tx: Transaction, provider: str, provider_job_id: str) -> Row | None:
    """The attempt that owns a run."""
    return _one(tx, job_attempts.c.provider == provider, job_attempts.c.provider_job_id == provider_job_id)


def update_attempt(
    tx: Transaction, attempt_id: str, changes: Mapping[str, Any], *premise: sa.ColumnElement[bool]
) -> bool:
    """Writes an attempt where the premise still holds; says whether it did."""
    statement = sa.update(job_attempts).where(job_attempts.c.id == attempt_id, *premise).values(dict(changes))
    return tx.execute(statement).rowcount == 1


def record_run(tx: Transaction, *, job_id: str, number: int, provider_job_id: str, at: datetime) -> bool:
    """Keeps a run's id on its attempt, once; False where the attempt has one already."""
    statement = (
        sa.update(job_attempts)
        .where(
            job_attempts.c.job_id == job_id,
            job_attempts.c.number == number,
            job_attempts.c.provider_job_id.is_(None),
        )
        .values(provider_job_id=provider_job_id, outcome="accepted", answered_at=at)
    )
    return tx.execute(statement).rowcount == 1


def _one(tx: Transaction, *conditions: sa.ColumnElement[bool]) -> Row | None:
    return tx.row(sa.select(job_attempts).where(*conditions))
