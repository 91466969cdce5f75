"""Events that came before anybody knew their run, and their wake-up."""

from __future__ import annotations

import structlog

from jobs.core.errors import JobsError
from jobs.services.runtime import Runtime
from webhooks.incoming.applying.claims import find_parked
from webhooks.incoming.applying.drain import drain_rows

_log = structlog.get_logger(__name__)


def wake_parked(runtime: Runtime, provider: str, provider_job_id: str) -> None:
    """Applies the events parked for a run. Called after the commit that made the run's id known; never raises.

    The other half of the race is the parker's: it looks for the run once more after its own commit. So whichever of
    the two commits last sees what the other has written.
    """
    try:
        with runtime.database.read() as tx:
            waiting = find_parked(tx, provider, provider_job_id)
        if waiting:
            drain_rows(runtime, waiting)
    except JobsError as error:
        # The id is committed, so the row's next look finds it.
        _log.warning("parked events were not woken", provider=provider, run=provider_job_id, reason=error.detail)
