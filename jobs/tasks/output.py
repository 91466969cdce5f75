"""The message that says: a run tells its output, and nobody listens."""

from __future__ import annotations

from celery import shared_task

from jobs.broker import READ_OUTPUT
from jobs.services.output.reading import read_output
from jobs.services.runtime import current

# Above the deadline of any job; a stream ends by itself. (Threads know no limit; a pool of processes would kill it.)
_LIMIT_S = 7 * 24 * 3600


# Not acknowledged late: a stream is longer than Redis waits before it sends a message again, and the row's lease
# brings it back sooner than that.
@shared_task(name=READ_OUTPUT, acks_late=False, soft_time_limit=_LIMIT_S, time_limit=_LIMIT_S + 10)
def read(job_id: str, lease_token: str | None = None) -> None:
    """Listens until the provider is done, or nobody waits for it any more."""
    read_output(current(), job_id, lease_token)
