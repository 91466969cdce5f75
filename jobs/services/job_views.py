"""A job's row, as ``decide`` sees it."""

from __future__ import annotations

from jobs.core.decisions import JobView
from jobs.core.observations import Progress, ReviewReason, Source
from jobs.core.states import JobState
from jobs.storage.jobs import Row


def view_of(row: Row) -> JobView:
    """What ``decide`` needs of a job's row."""
    progress, late = row["progress"], row["late_outcome"]
    return JobView(
        state=JobState(row["state"]),
        attempt=row["attempt"],
        provider_job_id=row["provider_job_id"],
        progress=Progress(progress["fraction"], progress["message"]) if progress else None,
        review=ReviewReason(row["review_reason"]) if row["review_reason"] else None,
        review_detail=row["review_detail"],
        ended_by=Source(row["ended_by"]) if row["ended_by"] else None,
        recorded_by=Source(row["outcome"]["source"]) if row["outcome"] else None,
        late_state=JobState(late["state"]) if late else None,
        cancel_requested=row["cancel_requested_at"] is not None,
        failing=row["failing"],
        overdue=row["overdue_at"] is not None,
        cost=row["cost"],
    )
