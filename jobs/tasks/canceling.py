"""The message that says: a job's run is to be canceled at its provider."""

from __future__ import annotations

from celery import shared_task

from jobs.broker import CANCEL
from jobs.services.canceling import cancel_run
from jobs.services.runtime import current


@shared_task(name=CANCEL)
def cancel(job_id: str, lease_token: str | None = None) -> None:
    """Cancels the run."""
    cancel_run(current(), job_id, lease_token)
