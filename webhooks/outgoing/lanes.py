"""Lanes: which endpoints have something due, and how much each may be sent at once.

Whoever claims, records, holds back or wakes deliveries of an endpoint locks its row first, so these follow one another,
and nobody waits for another endpoint's. Two do without. The beginning of a try changes nothing but a delivery that is
its own. New deliveries only refer to the row, and do not wait for it; whoever wrote them locks it before the commit,
and looks whether they may still be sent. The lock is held for as few round trips as can be, for it is what bounds an
endpoint's deliveries a second.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeAlias

import sqlalchemy as sa

from jobs.ids import new_token
from jobs.storage.bulk import update_rows
from jobs.storage.database import Transaction
from jobs.storage.metadata import Instant
from jobs.storage.prepared import Prepared
from webhooks.outgoing.schema import DeliveryState, EndpointState, deliveries, endpoints

#: Longer than an attempt and the wait of its message in a queue.
LEASE = timedelta(seconds=20)
#: An endpoint whose last try failed is asked by one at a time, and not more often than this.
FAILING_GAP = timedelta(milliseconds=100)
#: Tries at endpoints that fail, under way in the whole fleet: they may take their full time each.
FAILING_SLOTS = 4
FAILING_PAUSE = timedelta(seconds=1)

#: How far a claim looks beyond its number, for events of other jobs.
_AHEAD = 8

Lane: TypeAlias = dict[str, Any]
_e, _d = endpoints.c, deliveries.c


_ENDPOINT = sa.bindparam("endpoint", type_=sa.Text())
_NOW = sa.bindparam("now", type_=Instant())
_MOST = sa.bindparam("most", type_=sa.Integer())
_lock_lane = Prepared(sa.select(endpoints).where(_e.id == _ENDPOINT).with_for_update(key_share=True), tuple(_e))
_ends_under_way = Prepared(
    sa.select(_d.next_try_at).where(
        _d.endpoint_id == _ENDPOINT,
        _d.lease_token.is_not(None),
        _d.next_try_at > _NOW,
        _d.state == DeliveryState.PENDING,
    ),
    (_d.next_try_at,),
)
_first_waiting = Prepared(
    sa.select(_d.next_try_at)
    .where(_d.endpoint_id == _ENDPOINT, _d.next_try_at.is_not(None))
    .where(sa.or_(_d.lease_token.is_(None), _d.next_try_at <= _NOW))
    .order_by(_d.next_try_at)
    .limit(1),
    (_d.next_try_at,),
)


def _claimable() -> Prepared:
    """Claims that came to nothing, and what is due of jobs of which nothing is under way; the longest due of each."""
    under_way = deliveries.alias()
    is_under_way = sa.exists().where(
        under_way.c.endpoint_id == _d.endpoint_id,
        under_way.c.job_id == _d.job_id,
        under_way.c.lease_token.is_not(None),
        under_way.c.next_try_at > _NOW,
    )
    columns = (_d.id, _d.job_id, _d.lease_token, _d.next_try_at)
    theirs = sa.select(*columns).where(_d.endpoint_id == _ENDPOINT, _d.next_try_at <= _NOW)
    ordered = theirs.order_by(_d.next_try_at, _d.id)
    lost = ordered.where(_d.lease_token.is_not(None)).limit(_MOST)
    due = ordered.where(_d.lease_token.is_(None), ~is_under_way).limit(_MOST * _AHEAD)
    parts = (sa.select(part.subquery(name)) for part, name in ((lost, "lost"), (due, "due")))
    return Prepared(sa.union_all(*parts), columns)


_find_claimable = _claimable()


class Claim(NamedTuple):
    """A delivery that is ours until its lease ends; the token goes into the message and is consumed by its task."""

    delivery_id: str
    token: str


def has_due(tx: Transaction) -> bool:
    """Whether any lane has something due; costs one look at the partial index."""
    due = sa.select(_e.id).where(_e.next_send_at.is_not(None), _e.next_send_at <= tx.sql_now).limit(1)
    return tx.row(due) is not None


def lock_due(tx: Transaction, limit: int) -> list[Lane]:
    """Lanes with something due, longest due first; those another claimer holds are skipped."""
    statement = (
        sa.select(endpoints)
        .where(_e.next_send_at.is_not(None), _e.next_send_at <= tx.now)
        .order_by(_e.next_send_at)
        .limit(limit)
        .with_for_update(skip_locked=True, key_share=True)
    )
    return tx.rows(statement)


def lock_lane(tx: Transaction, endpoint_id: str) -> Lane | None:
    """One lane, held until the transaction ends."""
    return next(iter(_lock_lane.rows(tx, endpoint=endpoint_id)), None)


def lock_lanes(tx: Transaction, endpoint_ids: Collection[str]) -> list[Lane]:
    """Some lanes in the order of their ids, held until the transaction ends."""
    theirs = sa.select(endpoints).where(_e.id.in_(sorted(endpoint_ids))).order_by(_e.id)
    return tx.rows(theirs.with_for_update(key_share=True))


def wake(tx: Transaction, endpoint_ids: Collection[str]) -> None:
    """Says that these endpoints, whose rows are locked, have something due now."""
    enabled = sa.and_(_e.id.in_(sorted(endpoint_ids)), _e.state == EndpointState.ENABLED)
    later = sa.or_(_e.next_send_at.is_(None), _e.next_send_at > tx.now)
    tx.execute(sa.update(endpoints).where(enabled, later).values(next_send_at=tx.now))


def count_failing(tx: Transaction) -> int:
    """Tries under way at endpoints that fail, in the whole fleet."""
    joined = deliveries.join(endpoints, _e.id == _d.endpoint_id)
    statement = (
        sa.select(sa.func.count())
        .select_from(joined)
        .where(_d.lease_token.is_not(None), _d.next_try_at > tx.now, _e.failing_since.is_not(None))
    )
    return int(tx.execute(statement).scalar_one())


def slots(tx: Transaction, lane: Lane) -> int:
    """How many more tries the lane may have under way now."""
    if lane["state"] != EndpointState.ENABLED or (lane["not_before"] or tx.now) > tx.now:
        return 0
    most = 1 if lane["failing_since"] is not None else int(lane["concurrency"])
    return max(most - _under_way(tx, lane["id"])[0], 0)


def claim(tx: Transaction, lane: Lane, limit: int) -> list[Claim]:
    """Claims deliveries of a lane that are due, longest due first, and counts them against its rate.

    Of one job, one at a time: its events reach an endpoint that is well in their order. A claim that came to nothing,
    because its message or its worker was lost, is made again before anything else of its job. One whose try begins at
    this moment, at the last of its lease, stays that try's: what is claimed here is then skipped by whoever gets it.
    """
    first = _first_of_each_job(tx, lane, limit)
    claims = [Claim(row["id"], new_token()) for row in first]
    seen = [{"id": row["id"], "next_try_at": row["next_try_at"]} for row in first]
    update_rows(tx, deliveries, seen, [{"lease_token": each.token, "next_try_at": tx.now + LEASE} for each in claims])
    lane["not_before"] = _after(lane, len(claims), now=tx.now)
    return claims


def _first_of_each_job(tx: Transaction, lane: Lane, limit: int) -> list[dict[str, Any]]:
    rows = _find_claimable.rows(tx, endpoint=lane["id"], now=tx.now, most=limit)
    first: dict[str, dict[str, Any]] = {}
    for row in sorted(rows, key=lambda row: (row["lease_token"] is None, row["next_try_at"], row["id"])):
        first.setdefault(row["job_id"] or row["id"], row)
    return list(first.values())[:limit]


def put_off(tx: Transaction, lane: Lane) -> None:
    """Has a lane looked at again soon, because the others that fail have every slot there is for such."""
    tx.execute(sa.update(endpoints).where(_e.id == lane["id"]).values(next_send_at=tx.now + FAILING_PAUSE))


def rearm(tx: Transaction, lane: Lane) -> None:
    """Writes when the lane is next worth a look; ``lane`` is as it will be stored, and locked."""
    at = _next_look(tx, lane) if lane["state"] == EndpointState.ENABLED else None
    update_rows(tx, endpoints, [{"id": lane["id"]}], [{"next_send_at": at, "not_before": lane["not_before"]}])


def _next_look(tx: Transaction, lane: Lane) -> datetime | None:
    count, first_end = _under_way(tx, lane["id"])
    most = 1 if lane["failing_since"] is not None else int(lane["concurrency"])
    if count >= most:
        return first_end
    waiting = (row["next_try_at"] for row in _first_waiting.rows(tx, endpoint=lane["id"], now=tx.now))
    instants = [*waiting, *([first_end] if first_end else [])]
    return max(min(instants), lane["not_before"] or tx.now) if instants else None


def _under_way(tx: Transaction, endpoint_id: str) -> tuple[int, datetime | None]:
    """How many tries of a lane are under way, and when the first of their leases ends."""
    ends = sorted(row["next_try_at"] for row in _ends_under_way.rows(tx, endpoint=endpoint_id, now=tx.now))
    return len(ends), ends[0] if ends else None


def _after(lane: Lane, count: int, *, now: datetime) -> datetime | None:
    """When the lane's rate allows the next try."""
    gap = timedelta(seconds=1 / lane["rate_per_s"])
    if lane["failing_since"] is not None:
        gap = max(gap, FAILING_GAP)
    known: datetime | None = lane["not_before"]
    return known if count == 0 else max(known or now, now) + count * gap
