"""Dead letters of kind ``delivery``: events an endpoint did not take in all its tries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobs.storage.database import Transaction
from jobs.storage.dead_letters import dead_letter
from webhooks.outgoing.delivery_rows import find_delivery, make_due
from webhooks.outgoing.lanes import lock_lane, wake
from webhooks.outgoing.schema import DeliveryState, EndpointState

LETTER_KIND = "delivery"
#: What a redrive finds nothing to do about; whoever wants it sent all the same resends it.
_SETTLED = {
    DeliveryState.SUCCEEDED: "its endpoint has taken it since",
    DeliveryState.PENDING: "it waits to be sent already",
}


def write_letter(tx: Transaction, delivery: Mapping[str, Any], *, reason: str) -> str:
    """Writes the dead letter of a delivery, or adds to its open one."""
    evidence = {name: delivery[name] for name in ("endpoint_id", "event_id", "event_type")}
    return dead_letter(
        tx,
        LETTER_KIND,
        delivery["id"],
        reason=reason,
        attempts=delivery["attempts"],
        tenant=delivery["tenant"],
        job_id=delivery["job_id"],
        evidence=evidence,
        first_failed_at=delivery["first_failed_at"],
        counts_all=True,
    )


def redrive_delivery(tx: Transaction, letter: Mapping[str, Any]) -> str | None:
    """Makes a dead letter's delivery due again; returns why there is nothing to do, or None."""
    row = find_delivery(tx, letter["ref"])
    if row is None:
        return "the delivery is no longer here"
    lock_lane(tx, row["endpoint_id"])
    state = (find_delivery(tx, letter["ref"]) or row)["state"]
    return _SETTLED.get(state) or rearm_delivery(tx, row)


def rearm_delivery(tx: Transaction, row: Mapping[str, Any]) -> str | None:
    """Has a delivery sent again; returns why that cannot be, or None."""
    lane = lock_lane(tx, row["endpoint_id"])
    if lane is None or lane["deleted_at"] is not None:
        return "its endpoint has been deleted"
    if lane["state"] == EndpointState.DISABLED:
        return f"its endpoint {lane['id']} is disabled; enable that first"
    if not make_due(tx, row):
        return "it is being sent right now"
    wake(tx, [lane["id"]])
    return None
