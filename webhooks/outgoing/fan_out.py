"""Fan-out: in the relay's own transaction, one delivery for each endpoint that wants an event.

The bytes are fixed here, from what was committed with the change: every try, and every endpoint, gets the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import sqlalchemy as sa

from jobs.broker import DISPATCH
from jobs.core import text
from jobs.core.events import STATE_EVENTS, is_wanted
from jobs.core.states import TERMINAL
from jobs.ids import new_id
from jobs.services.documents import event_document
from jobs.storage.database import Transaction
from jobs.storage.schema import jobs, outbox
from webhooks.outgoing.delivery_rows import settle_pending
from webhooks.outgoing.endpoint_rows import ensure_callback_lane, list_subscribed
from webhooks.outgoing.lanes import lock_lanes, wake
from webhooks.outgoing.schema import DeliveryState, EndpointState, deliveries, event_bodies

Row = Mapping[str, Any]
_ENDS = frozenset(str(STATE_EVENTS[state]) for state in TERMINAL)


def fan_out(tx: Transaction, events: Sequence[Row]) -> set[tuple[str, ...]]:
    """Opens the deliveries of some events; the relay's transaction makes them durable.

    Args:
        tx: The relay's transaction.
        events: Rows of the outbox without their data.

    Returns:
        The messages to send after the commit.
    """
    wanted = [*_subscribed(tx, events), *_called_back(tx, events)]
    if not wanted:
        return set()
    _fix_bodies(tx, {event["id"] for _, event, _ in wanted})
    fresh = [
        new_delivery(tx, lane, event, url, place=place - len(wanted)) for place, (lane, event, url) in enumerate(wanted)
    ]
    tx.execute(tx.insert(deliveries).on_conflict_do_nothing(), fresh)
    awake = {lane["id"] for lane, _, _ in wanted if lane["state"] == EndpointState.ENABLED}
    _hold_back(tx, awake)
    wake(tx, awake)
    return {(DISPATCH,)} if awake else set()


def _hold_back(tx: Transaction, endpoint_ids: Collection[str]) -> None:
    """Who disabled or deleted an endpoint since we looked has not seen these deliveries: they are not committed yet."""
    for lane in lock_lanes(tx, endpoint_ids):
        if lane["state"] == EndpointState.DISABLED:
            settle_pending(tx, lane["id"], DeliveryState.DROPPED if lane["deleted_at"] else DeliveryState.HELD)


def body_of(envelope: Mapping[str, Any]) -> bytes:
    """The bytes of an event on the wire."""
    return text.canonical_json(envelope)


def store_bodies(tx: Transaction, bodies: Mapping[str, bytes]) -> None:
    """Fixes the bytes of events, by their ids, once."""
    rows = [{"event_id": event_id, "body": body} for event_id, body in bodies.items()]
    tx.execute(tx.insert(event_bodies).on_conflict_do_nothing(), rows)


def _subscribed(tx: Transaction, events: Sequence[Row]) -> Iterator[tuple[Row, Row, str | None]]:
    lanes = list_subscribed(tx, {event["tenant"] for event in events})
    for event in events:
        for lane in lanes:
            is_theirs = lane["tenant"] == event["tenant"] or (event["tenant"] is None and lane["sees_fleet"])
            if is_theirs and is_wanted(event["type"], tuple(lane["events"])):
                yield lane, event, None


def _called_back(tx: Transaction, events: Sequence[Row]) -> Iterator[tuple[Row, Row, str | None]]:
    ends = {event["job_id"]: event for event in events if event["type"] in _ENDS and event["job_id"]}
    if not ends:
        return
    statement = sa.select(jobs.c.id, jobs.c.tenant, jobs.c.callback_url).where(
        jobs.c.id.in_(sorted(ends)), jobs.c.callback_url.is_not(None)
    )
    for job in tx.rows(statement):
        lane = ensure_callback_lane(tx, job["tenant"], origin_of(job["callback_url"]))
        yield lane, ends[job["id"]], job["callback_url"]


def origin_of(url: str) -> str:
    """Scheme and host of a URL: callbacks to one host share its lane, however many URLs there are."""
    parts = urlsplit(url)
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}"


def _fix_bodies(tx: Transaction, event_ids: Iterable[str]) -> None:
    rows = tx.rows(sa.select(outbox).where(outbox.c.id.in_(sorted(event_ids))))
    store_bodies(tx, {row["id"]: body_of(_envelope(row)) for row in rows})


def _envelope(row: Row) -> Mapping[str, Any]:
    return {name: value for name, value in event_document(row).items() if name != "position"}


def new_delivery(tx: Transaction, lane: Row, event: Row, url: str | None, *, place: int = 0) -> dict[str, Any]:
    """A delivery in the making: due now, or held where its endpoint is disabled.

    Args:
        tx: The open transaction.
        lane: The endpoint.
        event: Its ``id``, ``type``, ``job_id`` and ``occurred_at``.
        url: Of a callback; None: the endpoint's own.
        place: Among those that become due now, up to 0: a microsecond apart, they are begun in the order of events.
    """
    is_held = lane["state"] == EndpointState.DISABLED
    return {
        "id": new_id("dlv", at=tx.now),
        "tenant": lane["tenant"],
        "endpoint_id": lane["id"],
        "event_id": event["id"],
        "event_type": event["type"],
        "job_id": event["job_id"],
        "url": url,
        "state": str(DeliveryState.HELD if is_held else DeliveryState.PENDING),
        "attempts": 0,
        "tries": 0,
        "next_try_at": None if is_held else tx.now + timedelta(microseconds=place),
        "occurred_at": event["occurred_at"],
        "created_at": tx.now,
        "finished_at": tx.now if is_held else None,
    }
