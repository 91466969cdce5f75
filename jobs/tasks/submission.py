"""The message that says: a job is due to be submitted."""

from __future__ import annotations

from celery import shared_task

from jobs.broker import SUBMIT
from jobs.services.runtime import current
from jobs.services.submitting.submission import submit_job
from jobs.services.working_on import work_on


@shared_task(name=SUBMIT)
def submit(job_id: str, lease_token: str | None = None) -> None:
    """Submits the job, or asks what became of its submit."""
    work_on(current(), "submit", submit_job, job_id=job_id, lease_token=lease_token)
