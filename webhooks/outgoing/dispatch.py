"""Dispatch: claims what may be sent now, fairly over endpoints, and rings for it.

What is claimed is bounded by each endpoint's concurrency and rate, so a queue never holds more than may be sent: one
dead endpoint with ten thousand pending is a claim or two, whoever waits behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobs.broker import DELIVER
from jobs.services.runtime import Runtime
from jobs.storage.database import Transaction
from webhooks.outgoing import lanes
from webhooks.outgoing.lanes import Claim

#: Lanes one pass looks at; the next pass begins with those that have waited longest.
LANES = 50
#: Deliveries of one message, sent side by side by one task.
SIDE_BY_SIDE = 16


def dispatch(runtime: Runtime) -> int:
    """One pass: claims, then rings. A message that is lost costs its deliveries the rest of their lease.

    Returns:
        How many deliveries were claimed.

    Raises:
        Unavailable: The database is away.
    """
    claims = claim_due(runtime)
    for message in _batches(claims):
        runtime.broker.publish(DELIVER, *(f"{delivery_id}:{token}" for delivery_id, token in message))
    return len(claims)


def claim_due(runtime: Runtime, *, limit: int = LANES) -> list[Claim]:
    """Claims what may be sent now.

    Raises:
        Unavailable: The database is away.
    """
    with runtime.database.read() as tx:
        if not lanes.has_due(tx):
            return []
    with runtime.database.write() as tx:
        return list(_claim_all(tx, limit))


def _claim_all(tx: Transaction, limit: int) -> Iterator[Claim]:
    free_for_failing = max(lanes.FAILING_SLOTS - lanes.count_failing(tx), 0)
    for lane in lanes.lock_due(tx, limit):
        most = lanes.slots(tx, lane)
        is_failing = lane["failing_since"] is not None
        if is_failing and not free_for_failing:
            lanes.put_off(tx, lane)
            continue
        claims = lanes.claim(tx, lane, min(most, SIDE_BY_SIDE)) if most else []
        free_for_failing -= len(claims) if is_failing else 0
        lanes.rearm(tx, lane)
        yield from claims


def _batches(claims: Sequence[Claim]) -> Iterator[Sequence[Claim]]:
    for start in range(0, len(claims), SIDE_BY_SIDE):
        yield claims[start : start + SIDE_BY_SIDE]
