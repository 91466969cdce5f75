"""A message's work, and then, for a moment, what else of the same provider is due.

Claims keep no more work under way than an account allows at once, so that few messages of a provider stand in the queue
and one that hangs holds up nobody else's. A worker that has finished one piece therefore takes the next itself: waiting
for the sweep would leave the account idle for the rest of each second. What it takes is of the tenant whose turn it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from jobs.broker import CANCEL, POLL, SUBMIT
from jobs.services.claims import claim_next
from jobs.services.runtime import Runtime
from jobs.storage.jobs import find_job

#: Then the queue has its turn: other providers' messages may wait in it.
_TURN_S = 1.0
_TASKS = {"submit": SUBMIT, "poll": POLL, "cancel": CANCEL}

#: Submits, polls or cancels a job: ``submit_job`` and its like. Says "nothing" where it was not its to do.
Service: TypeAlias = Callable[[Runtime, str, str | None], str]


def work_on(runtime: Runtime, kind: str, service: Service, *, job_id: str, lease_token: str | None) -> int:
    """Does a message's work and what follows it.

    Args:
        runtime: The process's parts.
        kind: ``submit``, ``poll`` or ``cancel``.
        service: What does it.
        job_id: The message's job.
        lease_token: The message's token, if it has one.

    Returns:
        How many pieces of work were done.

    Raises:
        Unavailable: The database is away; every piece's lease ends by itself.
    """
    ends_at_s = runtime.clock.monotonic() + _TURN_S
    if service(runtime, job_id, lease_token) == "nothing":
        return 0
    done, last = 1, job_id
    while (claim := _next_after(runtime, kind, last)) is not None:
        if runtime.clock.monotonic() >= ends_at_s:
            runtime.broker.publish(_TASKS[kind], *claim)
            break
        service(runtime, *claim)
        done, last = done + 1, claim[0]
    return done


def _next_after(runtime: Runtime, kind: str, job_id: str) -> tuple[str, str] | None:
    with runtime.database.read() as tx:
        job = find_job(tx, job_id)
    if job is None or job["provider"] not in runtime.providers:
        return None
    return claim_next(runtime, kind, provider=job["provider"], after=job["tenant"])
