"""The message that says: a Python handler is due for an event."""

from __future__ import annotations

from celery import shared_task

from jobs.broker import RUN_HANDLER
from jobs.services.handling import run_handler
from jobs.services.runtime import current

# A handler may train a model. A copy that is redelivered meanwhile finds the renewed lease and exits.
SOFT_LIMIT_S = 3600
HARD_LIMIT_S = SOFT_LIMIT_S + 60


@shared_task(name=RUN_HANDLER, soft_time_limit=SOFT_LIMIT_S, time_limit=HARD_LIMIT_S)
def run(run_id: str, token: str | None = None) -> None:
    """Runs the handler, if the run is still this message's to take."""
    run_handler(current(), int(run_id), token)
