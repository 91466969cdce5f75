"""Endpoints for people: make, read, change, disable, enable, rotate, test, recover, delete."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobs.broker import DISPATCH
from jobs.core.errors import Conflict
from jobs.core.events import EventType, is_wanted
from jobs.core.suggestions import did_you_mean
from jobs.services.addresses import check_address
from jobs.services.documents import Document
from jobs.services.faults import field_fault
from jobs.services.keys import Principal, Role
from jobs.services.paging import page, text_place
from jobs.services.runtime import Runtime
from jobs.storage.database import Database, Transaction
from webhooks.outgoing import lanes, recovering
from webhooks.outgoing.delivery_rows import settle_pending
from webhooks.outgoing.documents import endpoint_document
from webhooks.outgoing.endpoint_rows import (
    DEFAULT_CONCURRENCY,
    DEFAULT_RATE_PER_S,
    count_endpoints,
    get_endpoint,
    insert_endpoint,
    list_endpoints,
    new_row,
    update_endpoint,
)
from webhooks.outgoing.outcomes import disable as disable_lane
from webhooks.outgoing.schema import DeliveryState, EndpointKind, EndpointState
from webhooks.outgoing.sealing import sealer_for
from webhooks.outgoing.secrets import check_secret, first, new_signing_secret, rotated

#: Each event makes one row for each endpoint that wants it, in one transaction.
MAX_ENDPOINTS = 100


@dataclass(frozen=True, slots=True)
class NewEndpoint:
    """What a client asks for.

    Attributes:
        url: Where to send to.
        events: Types, or patterns such as ``job.*``.
        secret: ``whsec_…``; None: one is made.
        rate_per_s: Tries a second at most.
        concurrency: Tries at once at most.
        description: The client's own words.
    """

    url: str
    events: tuple[str, ...]
    secret: str | None = None
    rate_per_s: float = DEFAULT_RATE_PER_S
    concurrency: int = DEFAULT_CONCURRENCY
    description: str | None = None


def create_endpoint(runtime: Runtime, principal: Principal, wanted: NewEndpoint) -> Document:
    """Makes an endpoint; the answer is the only one that shows a secret that was made here.

    Raises:
        AddressRefused: The guard refuses the URL.
        Conflict: The tenant has as many as it may have.
        Unprocessable: A pattern fits no event, or the secret cannot be used.
    """
    check_patterns(wanted.events)
    secret = _usable(wanted.secret)
    check_address(runtime.guard, "url", wanted.url)
    columns = {
        "events": list(wanted.events),
        "description": wanted.description,
        "rate_per_s": wanted.rate_per_s,
        "concurrency": wanted.concurrency,
        "secrets": first(sealer_for(runtime.settings), secret),
        "sees_fleet": principal.role.includes(Role.ADMIN),
    }
    with runtime.database.write() as tx:
        if count_endpoints(tx, principal.tenant) >= MAX_ENDPOINTS:
            raise Conflict(f"{MAX_ENDPOINTS} endpoints are the most a tenant may have; delete one first")
        row = new_row(tx, tenant=principal.tenant, kind=EndpointKind.SUBSCRIBED, url=wanted.url, columns=columns)
        insert_endpoint(tx, row)
        return endpoint_document(get_endpoint(tx, row["id"], tenant=principal.tenant), secret=secret)


def read_endpoints(database: Database, principal: Principal, *, cursor: str | None, limit: int) -> Document:
    """A page of endpoints, newest first.

    Raises:
        Unprocessable: The cursor is not one of ours.
    """
    before = text_place(cursor)
    with database.read() as tx:
        rows = list_endpoints(tx, tenant=principal.tenant, before=before, limit=limit + 1)
    return page(rows, limit=limit, place="id", show=endpoint_document)


def read_endpoint(database: Database, principal: Principal, endpoint_id: str) -> Document:
    """One endpoint.

    Raises:
        NotFound: There is none, or it is another tenant's.
    """
    with database.read() as tx:
        return _shown(tx, principal, endpoint_id)


def change_endpoint(runtime: Runtime, principal: Principal, endpoint_id: str, changes: Mapping[str, Any]) -> Document:
    """Changes what was named, and nothing else. Deliveries that wait go to the new URL.

    Raises:
        NotFound: There is none, or it is another tenant's.
        AddressRefused: The guard refuses the URL.
        Unprocessable: A pattern fits no event.
    """
    if "events" in changes:
        check_patterns(changes["events"])
    if "url" in changes:
        check_address(runtime.guard, "url", changes["url"])
    with runtime.database.write() as tx:
        get_endpoint(tx, endpoint_id, tenant=principal.tenant, locked=True)
        update_endpoint(tx, endpoint_id, changes)
        return _shown(tx, principal, endpoint_id)


def delete_endpoint(runtime: Runtime, principal: Principal, endpoint_id: str) -> None:
    """Deletes an endpoint. What waits for it is dropped; what was sent stays in the list of deliveries.

    Raises:
        NotFound: There is none, or it is another tenant's.
    """
    with runtime.database.write() as tx:
        row = get_endpoint(tx, endpoint_id, tenant=principal.tenant, locked=True)
        settle_pending(tx, endpoint_id, DeliveryState.DROPPED)
        gone: dict[str, Any] = {
            "deleted_at": tx.now,
            "state": str(EndpointState.DISABLED),
            "disabled_at": row["disabled_at"] or tx.now,
            "next_send_at": None,
            "recover_next_at": None,
            "secrets": [],
        }
        update_endpoint(tx, endpoint_id, gone)


def disable_endpoint(runtime: Runtime, principal: Principal, endpoint_id: str) -> Document:
    """Sends nothing more; events are kept and can be recovered.

    Raises:
        NotFound: There is none, or it is another tenant's.
    """
    with runtime.database.write() as tx:
        row = get_endpoint(tx, endpoint_id, tenant=principal.tenant, locked=True)
        if row["state"] == EndpointState.ENABLED:
            disable_lane(tx, row, reason=f"disabled by key {principal.key_id}")
        return _shown(tx, principal, endpoint_id)


def enable_endpoint(runtime: Runtime, principal: Principal, endpoint_id: str) -> Document:
    """Sends again, beginning with events from now on; :func:`recover_endpoint` brings those it has missed.

    Raises:
        NotFound: There is none, or it is another tenant's.
    """
    with runtime.database.write() as tx:
        row = get_endpoint(tx, endpoint_id, tenant=principal.tenant, locked=True)
        well = dict.fromkeys(("disabled_at", "disabled_reason", "failing_since", "last_failed_at", "not_before"))
        if row["state"] == EndpointState.DISABLED:
            row |= {**well, "state": str(EndpointState.ENABLED)}
            update_endpoint(tx, endpoint_id, {**well, "state": row["state"]})
            lanes.rearm(tx, row)
        return _shown(tx, principal, endpoint_id)


def rotate_secret(runtime: Runtime, principal: Principal, endpoint_id: str, secret: str | None) -> Document:
    """Takes a new secret, which is shown once; the old one signs as well for 24 hours.

    Raises:
        NotFound: There is none, or it is another tenant's.
        Unprocessable: The secret cannot be used.
    """
    fresh = _usable(secret)
    sealer = sealer_for(runtime.settings)
    with runtime.database.write() as tx:
        row = get_endpoint(tx, endpoint_id, tenant=principal.tenant, locked=True)
        update_endpoint(tx, endpoint_id, {"secrets": rotated(sealer, row["secrets"], fresh, at=tx.now)})
        return endpoint_document(get_endpoint(tx, endpoint_id, tenant=principal.tenant), secret=fresh)


def recover_endpoint(
    runtime: Runtime, principal: Principal, endpoint_id: str, *, since: datetime, until: datetime | None
) -> Document:
    """Has everything sent again that the endpoint has missed in a span; see :mod:`webhooks.outgoing.recovering`.

    Raises:
        NotFound: There is none, or it is another tenant's.
        Unprocessable: The span ends before it begins.
    """
    with runtime.database.write() as tx:
        get_endpoint(tx, endpoint_id, tenant=principal.tenant, locked=True)
        recovering.begin(tx, endpoint_id, since=since, until=until)
        after = _shown(tx, principal, endpoint_id)
    runtime.broker.publish(DISPATCH)
    return after


def check_patterns(patterns: Iterable[str]) -> None:
    """Refuses a pattern that fits no event there is.

    Raises:
        Unprocessable: Names the first one, and what may have been meant.
    """
    for pattern in patterns:
        if not any(is_wanted(str(known), (pattern,)) for known in EventType):
            meant = did_you_mean(pattern, [str(known) for known in EventType])
            hint = f"; did you mean {meant}?" if meant else ""
            raise field_fault("events", f"holds {pattern[:100]!r}, which fits no event{hint}")


def _usable(secret: str | None) -> str:
    if secret is None:
        return new_signing_secret()
    try:
        return check_secret(secret)
    except ValueError as fault:
        raise field_fault("secret", str(fault)) from None


def _shown(tx: Transaction, principal: Principal, endpoint_id: str) -> Document:
    return endpoint_document(get_endpoint(tx, endpoint_id, tenant=principal.tenant))
