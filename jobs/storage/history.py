"""``job_transitions``: the append-only history of a job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from jobs.core.decisions import Step
from jobs.core.observations import Observation
from jobs.storage.bulk import insert_rows
from jobs.storage.database import Transaction
from jobs.storage.jobs import Row
from jobs.storage.schema import job_transitions


def transition_row(job_id: str, step: Step, seen: Observation) -> Row:
    """A history row in the making."""
    return {
        "job_id": job_id,
        "from_state": str(step.before),
        "to_state": str(step.after),
        "source": str(seen.source),
        "at": seen.at,
        "attempt": seen.attempt,
        "provider_job_id": seen.provider_job_id,
        "event_id": seen.evidence.event_id,
        "digest": seen.evidence.digest,
        "applied": step.applied,
        "reason": step.reason,
    }


def append_transitions(tx: Transaction, rows: Sequence[Row]) -> None:
    """Writes history rows."""
    insert_rows(tx, job_transitions, rows)


def list_transitions(tx: Transaction, job_id: str, *, limit: int = 1000) -> list[dict[str, Any]]:
    """A job's history, oldest first."""
    statement = (
        sa.select(job_transitions).where(job_transitions.c.job_id == job_id).order_by(job_transitions.c.id).limit(limit)
    )
    return tx.rows(statement)
