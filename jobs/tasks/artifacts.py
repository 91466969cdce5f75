"""The message that says: a result file is due to be fetched."""

from __future__ import annotations

from celery import shared_task

from jobs.broker import FETCH_ARTIFACT
from jobs.services.artifacts.fetching import fetch_artifact
from jobs.services.runtime import current

# Above the bound of a whole download, which ends by itself.
_LIMIT_S = 30 * 60


@shared_task(name=FETCH_ARTIFACT, soft_time_limit=_LIMIT_S, time_limit=_LIMIT_S + 10)
def fetch(artifact_id: str, lease_token: str | None = None) -> None:
    """Fetches the file and ends its job where it was the last."""
    fetch_artifact(current(), artifact_id, lease_token)
