"""The messages that say: a run is to be canceled at its provider."""

from __future__ import annotations

from celery import shared_task

from jobs.broker import CANCEL, STOP_EXTRA_RUN
from jobs.services.canceling import cancel_run
from jobs.services.extra_runs import stop_extra_run
from jobs.services.runtime import current
from jobs.services.working_on import work_on


@shared_task(name=CANCEL)
def cancel(job_id: str, lease_token: str | None = None) -> None:
    """Cancels the run."""
    work_on(current(), "cancel", cancel_run, job_id=job_id, lease_token=lease_token)


@shared_task(name=STOP_EXTRA_RUN)
def stop_extra(extra_id: str, lease_token: str | None = None) -> None:
    """Stops a run that nobody waits for."""
    stop_extra_run(current(), extra_id, lease_token)
