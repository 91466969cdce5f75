"""Statements on deliveries and their attempts, one delivery at a time. Writes under a lease repeat its token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from jobs.core.errors import NotFound
from jobs.storage.bulk import insert_rows, update_rows
from jobs.storage.database import Transaction
from jobs.storage.metadata import Instant
from jobs.storage.prepared import Prepared
from webhooks.outgoing.attempt import Answered
from webhooks.outgoing.lanes import LEASE
from webhooks.outgoing.schema import DeliveryState, deliveries, delivery_attempts, endpoints, event_bodies

_d, _a, _e = deliveries.c, delivery_attempts.c, endpoints.c
#: What a delivery that is asked for again begins with.
AFRESH: Mapping[str, Any] = {
    "state": str(DeliveryState.PENDING),
    "tries": 0,
    "starts": 0,
    "lease_token": None,
    "first_failed_at": None,
    "finished_at": None,
}


_DELIVERY = sa.bindparam("delivery", type_=sa.Text())
_try = (*_d, event_bodies.c.body, _e.secrets, _e.kind.label("lane_kind"), _e.url.label("lane_url"))
_find_try = Prepared(
    sa.select(*_try)
    .join(endpoints, _e.id == _d.endpoint_id)
    .join(event_bodies, event_bodies.c.event_id == _d.event_id)
    .where(_d.id == _DELIVERY),
    _try,
)
_begin = Prepared(
    sa.update(deliveries)
    .where(
        _d.id == _DELIVERY,
        _d.lease_token == sa.bindparam("held", type_=sa.Text()),
        _d.next_try_at > sa.bindparam("now", type_=Instant()),
    )
    .values(
        attempts=_d.attempts + 1,
        tries=_d.tries + 1,
        starts=_d.starts + 1,
        lease_token=sa.bindparam("fresh", type_=sa.Text()),
        next_try_at=sa.bindparam("until", type_=Instant()),
    )
)


@dataclass(frozen=True, slots=True)
class DeliveryFilter:
    """Which deliveries: each filter that is set must hold."""

    endpoint_id: str | None = None
    job_id: str | None = None
    state: str | None = None


def list_deliveries(
    tx: Transaction, *, tenant: str, wanted: DeliveryFilter, before: str | None, limit: int
) -> list[dict[str, Any]]:
    """A tenant's deliveries, newest first."""
    pairs = ((_d.endpoint_id, wanted.endpoint_id), (_d.job_id, wanted.job_id), (_d.state, wanted.state))
    conditions = [column == value for column, value in pairs if value is not None]
    if before is not None:
        conditions.append(_d.id < before)
    statement = sa.select(deliveries).where(_d.tenant == tenant, *conditions).order_by(_d.id.desc()).limit(limit)
    return tx.rows(statement)


def get_delivery(tx: Transaction, delivery_id: str, *, tenant: str) -> dict[str, Any]:
    """One delivery.

    Raises:
        NotFound: There is none, or it is another tenant's.
    """
    row = tx.row(sa.select(deliveries).where(_d.id == delivery_id, _d.tenant == tenant))
    if row is None:
        raise NotFound(f"there is no delivery {delivery_id!r}")
    return row


def find_delivery(tx: Transaction, delivery_id: str) -> dict[str, Any] | None:
    """One delivery, of whichever tenant; None where there is none."""
    return tx.row(sa.select(deliveries).where(_d.id == delivery_id))


def find_try(tx: Transaction, delivery_id: str) -> dict[str, Any] | None:
    """One delivery and what sending it takes; None where there is none.

    Returns:
        Its columns, its bytes (``body``), and its endpoint's ``secrets``, ``lane_kind`` and ``lane_url``.
    """
    return next(iter(_find_try.rows(tx, delivery=delivery_id)), None)


def list_attempts(tx: Transaction, delivery_id: str) -> list[dict[str, Any]]:
    """Every attempt, oldest first."""
    return tx.rows(sa.select(delivery_attempts).where(_a.delivery_id == delivery_id).order_by(_a.number))


def begin_attempt(tx: Transaction, row: Mapping[str, Any], *, held: str, fresh: str) -> bool:
    """Counts a try, swaps the message's token for the work's own, and opens the attempt's line in the log.

    Returns:
        False where the claim has passed on, or its message came twice.
    """
    until = tx.now + LEASE * (1 << row["starts"])
    if _begin.run(tx, delivery=row["id"], held=held, now=tx.now, fresh=fresh, until=until).rowcount != 1:
        return False
    insert_rows(tx, delivery_attempts, [{"delivery_id": row["id"], "number": row["attempts"] + 1, "at": tx.now}])
    return True


def finish_attempt(tx: Transaction, delivery_id: str, number: int, answered: Answered, *, ms: int) -> None:
    """Closes an attempt's line. Also done by a worker whose lease has passed on: the request did leave."""
    values = {"status": answered.status, "error": answered.error, "excerpt": answered.excerpt, "ms": ms}
    line = {"delivery_id": delivery_id, "number": number}
    update_rows(tx, delivery_attempts, [line], [values], unset=("ms",))


def update_held(tx: Transaction, delivery_id: str, *, held: str, changes: Mapping[str, Any]) -> bool:
    """Writes to a delivery under its lease; False where that has passed on."""
    mine = {"id": delivery_id, "lease_token": held}
    return update_rows(tx, deliveries, [mine], [{**changes, "lease_token": None, "starts": 0}]) == 1


def make_due(tx: Transaction, row: Mapping[str, Any]) -> bool:
    """Has a delivery sent again, as if it had never been tried; False where somebody is at it or changed it."""
    free = sa.or_(_d.lease_token.is_(None), _d.next_try_at <= tx.now)
    same = sa.and_(_d.id == row["id"], _d.state == row["state"], free)
    return tx.execute(sa.update(deliveries).where(same).values({**AFRESH, "next_try_at": tx.now})).rowcount == 1


def settle_pending(tx: Transaction, endpoint_id: str, state: DeliveryState) -> int:
    """Ends everything of an endpoint that waits: it is held, or dropped. A try under way still logs its answer."""
    pending = sa.and_(_d.endpoint_id == endpoint_id, _d.next_try_at.is_not(None))
    values = {"state": str(state), "next_try_at": None, "lease_token": None, "finished_at": tx.now}
    return tx.execute(sa.update(deliveries).where(pending).values(values)).rowcount
