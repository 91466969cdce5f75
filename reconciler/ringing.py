"""What the sweeps of due work have in common: claim a batch in one transaction, then ring one bell for each claim."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.services.runtime import Runtime
from reconciler.counts import Counts


def ring_each(runtime: Runtime, task: str, claims: Sequence[tuple[str, str]], *, limit: int) -> Counts:
    """Publishes each claim with its token; a bell that is lost costs the claim's lease, not the work.

    Args:
        runtime: The process's parts.
        task: The task's name.
        claims: (id, lease token) of each.
        limit: What the claim was bounded by.
    """
    rung = sum(runtime.broker.publish(task, row_id, token) for row_id, token in claims)
    return Counts(handled=len(claims), rung=rung, more=len(claims) == limit)
