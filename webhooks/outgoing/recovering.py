"""Recovery: what an endpoint missed since an instant is sent again, however much that is.

A recovery is a place in the endpoint's list of deliveries, moved on by batches: it holds no lock for long, goes on
where it was after a restart, and what it makes due is sent at the endpoint's own rate, the oldest first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from jobs.core.errors import Unprocessable
from jobs.services.faults import field_fault
from jobs.storage.database import Transaction
from jobs.storage.schema import outbox
from webhooks.outgoing.delivery_rows import AFRESH
from webhooks.outgoing.endpoint_rows import update_endpoint
from webhooks.outgoing.lanes import lock_lane, wake
from webhooks.outgoing.schema import DeliveryState, deliveries, endpoints

BATCH = 500

_d, _e = deliveries.c, endpoints.c
#: What an endpoint has missed.
_MISSED = (str(DeliveryState.HELD), str(DeliveryState.FAILED))


def begin(tx: Transaction, endpoint_id: str, *, since: datetime, until: datetime | None) -> None:
    """Starts a recovery, or widens the one under way so that nothing either asked for is left out.

    Raises:
        Unprocessable: It would end before it begins.
    """
    end = until or tx.now
    if end <= since:
        raise _backwards()
    lane = lock_lane(tx, endpoint_id) or {}
    if lane.get("recover_next_at") is not None:
        since, end = min(since, lane["recover_since"]), max(end, lane["recover_until"])
    place = {"recover_since": since, "recover_until": end, "recover_after": None, "recover_next_at": tx.now}
    update_endpoint(tx, endpoint_id, place)


def has_due(tx: Transaction) -> bool:
    """Whether any recovery is under way."""
    return tx.row(sa.select(_e.id).where(_e.recover_next_at.is_not(None)).limit(1)) is not None


def advance(tx: Transaction, *, limit: int = BATCH) -> int:
    """Moves the recovery that has waited longest on by one batch.

    Returns:
        How many deliveries it made due; 0 also where one has come to its end.
    """
    statement = (
        sa.select(endpoints)
        .where(_e.recover_next_at.is_not(None), _e.recover_next_at <= tx.now)
        .order_by(_e.recover_next_at)
        .limit(1)
        .with_for_update(skip_locked=True, key_share=True)
    )
    lane = tx.row(statement)
    return 0 if lane is None else _advance(tx, lane, limit)


def _advance(tx: Transaction, lane: Mapping[str, Any], limit: int) -> int:
    missed = tx.rows(_missed(lane).limit(limit))
    if not missed:
        update_endpoint(tx, lane["id"], {"recover_next_at": None, "recover_after": None})
        return 0
    _make_due(tx, missed)
    update_endpoint(tx, lane["id"], {"recover_after": missed[-1]["id"], "recover_next_at": tx.now})
    wake(tx, [lane["id"]])
    return len(missed)


def _make_due(tx: Transaction, missed: Sequence[Mapping[str, Any]]) -> None:
    """A microsecond apart, so that they are begun in the order of events; their ids tell no more than milliseconds."""
    in_order = sorted(missed, key=lambda row: (row["position"] or 0, row["occurred_at"], row["id"]))
    still_missed = sa.or_(*(_d.state == state for state in _MISSED))
    statement = (
        sa.update(deliveries)
        .where(_d.id == sa.bindparam("this_delivery"), still_missed)
        .values({**AFRESH, "next_try_at": sa.bindparam("this_instant")})
    )
    begins = tx.now - timedelta(microseconds=len(missed))
    pairs = [
        {"this_delivery": row["id"], "this_instant": begins + timedelta(microseconds=place)}
        for place, row in enumerate(in_order)
    ]
    tx.execute(statement, pairs)


def _missed(lane: Mapping[str, Any]) -> sa.Select[Any]:
    conditions = [
        _d.endpoint_id == lane["id"],
        _d.state.in_(_MISSED),
        _d.occurred_at >= lane["recover_since"],
        _d.occurred_at <= lane["recover_until"],
    ]
    if lane["recover_after"] is not None:
        conditions.append(_d.id > lane["recover_after"])
    joined = deliveries.outerjoin(outbox, outbox.c.id == _d.event_id)
    found = sa.select(_d.id, _d.occurred_at, outbox.c.position).select_from(joined)
    return found.where(*conditions).order_by(_d.id)


def _backwards() -> Unprocessable:
    return field_fault("until", "must be later than since, and since must have passed")
