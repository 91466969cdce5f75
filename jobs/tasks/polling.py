"""The message that says: a job's next status read is due."""

from __future__ import annotations

from celery import shared_task

from jobs.broker import POLL
from jobs.services.polling import poll_job
from jobs.services.runtime import current
from jobs.services.working_on import work_on


@shared_task(name=POLL)
def poll(job_id: str, lease_token: str | None = None) -> None:
    """Reads the job's status at its provider."""
    work_on(current(), "poll", poll_job, job_id=job_id, lease_token=lease_token)
