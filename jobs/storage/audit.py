"""Every row of the jobs and of their history, for proofs over databases that are small on purpose."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from jobs.storage.database import Transaction
from jobs.storage.schema import job_transitions, jobs


def all_jobs(tx: Transaction) -> list[dict[str, Any]]:
    """How each job stands."""
    columns = jobs.c
    chosen = (columns.id, columns.state, columns.provider_job_id, columns.finished_at, columns.review_reason)
    return tx.rows(sa.select(*chosen))


def all_steps(tx: Transaction) -> list[dict[str, Any]]:
    """What was applied to any job, oldest first."""
    columns = job_transitions.c
    chosen = (columns.job_id, columns.from_state, columns.to_state, columns.source)
    return tx.rows(sa.select(*chosen).where(columns.applied).order_by(columns.id))
