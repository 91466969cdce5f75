"""Statements on ``idempotency_keys``: which request of a client made which job."""

from __future__ import annotations

import sqlalchemy as sa

from jobs.storage.database import Transaction
from jobs.storage.jobs import Row
from jobs.storage.schema import idempotency_keys


def find_request(tx: Transaction, *, tenant: str, key: str) -> Row | None:
    """The request that used this key before."""
    columns = idempotency_keys.c
    return tx.row(sa.select(idempotency_keys).where(columns.tenant == tenant, columns.key == key))


def insert_request(tx: Transaction, *, tenant: str, key: str, fingerprint: str, job_id: str) -> bool:
    """Takes a key for a job; False where another request has it.

    On PostgreSQL this waits for a transaction that holds the same key and has not ended, so the answer is final.
    """
    row = {"tenant": tenant, "key": key, "fingerprint": fingerprint, "job_id": job_id, "created_at": tx.now}
    # What came back, not how many rows: SQLAlchemy does not keep the count of an INSERT on every driver.
    statement = tx.insert(idempotency_keys).values(row).on_conflict_do_nothing().returning(idempotency_keys.c.key)
    return tx.execute(statement).first() is not None
