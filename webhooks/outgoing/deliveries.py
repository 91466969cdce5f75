"""Deliveries for people: list, read with every attempt, send again; and the test of an endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from jobs.broker import DISPATCH
from jobs.core import instants
from jobs.core.errors import Conflict
from jobs.core.events import SCHEMA_VERSION, EventType
from jobs.ids import new_id
from jobs.services.documents import Document
from jobs.services.keys import Principal
from jobs.services.paging import page, text_place
from jobs.services.runtime import Runtime
from jobs.storage.database import Database, Transaction
from webhooks.outgoing.delivery_rows import DeliveryFilter, get_delivery, list_attempts, list_deliveries
from webhooks.outgoing.documents import delivery_document
from webhooks.outgoing.endpoint_rows import get_endpoint
from webhooks.outgoing.fan_out import body_of, new_delivery, store_bodies
from webhooks.outgoing.lanes import wake
from webhooks.outgoing.letters import rearm_delivery
from webhooks.outgoing.schema import EndpointState, deliveries


def read_deliveries(
    database: Database, principal: Principal, *, wanted: DeliveryFilter, cursor: str | None, limit: int
) -> Document:
    """A page of deliveries, newest first, without their attempts.

    Raises:
        Unprocessable: The cursor is not one of ours.
    """
    before = text_place(cursor)
    with database.read() as tx:
        rows = list_deliveries(tx, tenant=principal.tenant, wanted=wanted, before=before, limit=limit + 1)
    return page(rows, limit=limit, place="id", show=delivery_document)


def read_delivery(database: Database, principal: Principal, delivery_id: str) -> Document:
    """One delivery, with every attempt.

    Raises:
        NotFound: There is none, or it is another tenant's.
    """
    with database.read() as tx:
        return _shown(tx, principal, delivery_id)


def resend(runtime: Runtime, principal: Principal, delivery_id: str) -> Document:
    """Has a delivery sent again now, whatever became of it: same id, same bytes, signed anew.

    Raises:
        NotFound: There is none, or it is another tenant's.
        Conflict: Its endpoint is disabled or deleted, or it is being sent right now.
    """
    with runtime.database.write() as tx:
        why_not = rearm_delivery(tx, get_delivery(tx, delivery_id, tenant=principal.tenant))
        if why_not is not None:
            raise Conflict(f"delivery {delivery_id} cannot be sent again: {why_not}")
        after = _shown(tx, principal, delivery_id)
    runtime.broker.publish(DISPATCH)
    return after


def send_test(runtime: Runtime, principal: Principal, endpoint_id: str) -> Document:
    """Sends an ``endpoint.test`` to one endpoint, signed and retried like any event.

    Raises:
        NotFound: There is none, or it is another tenant's.
        Conflict: It is disabled.
    """
    with runtime.database.write() as tx:
        # Locked first: nobody disables it before the new row is there.
        endpoint = get_endpoint(tx, endpoint_id, tenant=principal.tenant, locked=True)
        if endpoint["state"] == EndpointState.DISABLED:
            raise Conflict(f"endpoint {endpoint_id} is disabled; enable it first")
        event = _test_event(endpoint, at=tx.now)
        store_bodies(tx, {event["id"]: body_of({**event, "occurred_at": instants.to_text(tx.now)})})
        row = new_delivery(tx, endpoint, {**event, "job_id": None}, None)
        tx.execute(sa.insert(deliveries).values(row))
        wake(tx, [endpoint_id])
        after = _shown(tx, principal, row["id"])
    runtime.broker.publish(DISPATCH)
    return after


def _test_event(endpoint: Mapping[str, Any], *, at: datetime) -> dict[str, Any]:
    return {
        "id": new_id("evt", at=at),
        "type": str(EventType.ENDPOINT_TEST),
        "schema_version": SCHEMA_VERSION,
        "sequence": None,
        "occurred_at": at,
        "tenant": endpoint["tenant"],
        "data": {"endpoint": {"id": endpoint["id"], "url": endpoint["url"]}},
    }


def _shown(tx: Transaction, principal: Principal, delivery_id: str) -> Document:
    row = get_delivery(tx, delivery_id, tenant=principal.tenant)
    return delivery_document(row, list_attempts(tx, delivery_id))
