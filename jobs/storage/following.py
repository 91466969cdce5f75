"""What streams read: where some jobs stand, and the events of one after a place."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from jobs.core.cursors import Cursor
from jobs.storage.database import Transaction
from jobs.storage.output_schema import output_streams
from jobs.storage.schema import jobs, outbox


def find_standings(tx: Transaction, job_ids: list[str]) -> dict[str, Cursor]:
    """How far some jobs and their output have come, in one query; erased ones are missing."""
    output = [sa.func.coalesce(output_streams.c[name], 0).label(name) for name in ("generation", "length")]
    of_jobs = (
        sa.select(jobs.c.id, jobs.c.event_count, jobs.c.version, *output)
        .outerjoin(output_streams, output_streams.c.job_id == jobs.c.id)
        .where(jobs.c.id.in_(job_ids))
    )
    return {
        row["id"]: Cursor(row["event_count"], row["version"], row["generation"], row["length"])
        for row in tx.rows(of_jobs)
    }


def list_job_events(tx: Transaction, job_id: str, *, after: int) -> list[dict[str, Any]]:
    """A job's events after a sequence number, in their order; there are some tens of them per job.

    Their order is complete at their commit (the job's row is locked while one is given its number), so that a
    stream need not wait for the relay.
    """
    columns = outbox.c
    conditions = (columns.job_id == job_id, columns.sequence > after)
    return tx.rows(sa.select(outbox).where(*conditions).order_by(columns.sequence))
