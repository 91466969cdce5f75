"""Statements on endpoints, for people and for the fan-out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa

from jobs.core.errors import NotFound
from jobs.ids import new_id
from jobs.storage.database import Transaction
from webhooks.outgoing.schema import EndpointKind, EndpointState, endpoints

DEFAULT_RATE_PER_S = 50.0
DEFAULT_CONCURRENCY = 4

_e = endpoints.c
_is_theirs = sa.and_(_e.kind == EndpointKind.SUBSCRIBED, _e.deleted_at.is_(None))


def list_subscribed(tx: Transaction, tenants: Collection[str | None]) -> list[dict[str, Any]]:
    """The endpoints that may want events of these tenants; None stands for events of the fleet."""
    named = sorted(tenant for tenant in tenants if tenant is not None)
    ours = _e.tenant.in_(named)
    condition = sa.or_(ours, _e.sees_fleet.is_(True)) if None in tenants else ours
    columns = (_e.id, _e.tenant, _e.events, _e.state, _e.sees_fleet)
    return tx.rows(sa.select(*columns).where(_is_theirs, condition).order_by(_e.id))


def ensure_callback_lane(tx: Transaction, tenant: str, origin: str) -> dict[str, Any]:
    """The lane of a tenant's callbacks to one origin, made where there is none."""
    statement = sa.select(endpoints).where(_e.kind == EndpointKind.CALLBACK, _e.tenant == tenant, _e.url == origin)
    found = tx.row(statement)
    if found is not None:
        return found
    row = new_row(tx, tenant=tenant, kind=EndpointKind.CALLBACK, url=origin)
    tx.execute(tx.insert(endpoints).values(row).on_conflict_do_nothing())
    made = tx.row(statement)
    if made is None:
        raise LookupError("a lane that was just made is not there")
    return made


def new_row(
    tx: Transaction, *, tenant: str, kind: EndpointKind, url: str, columns: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """An endpoint in the making; ``columns`` override."""
    return {
        "id": new_id("ep", at=tx.now),
        "tenant": tenant,
        "kind": str(kind),
        "url": url,
        "events": [],
        "sees_fleet": False,
        "rate_per_s": DEFAULT_RATE_PER_S,
        "concurrency": DEFAULT_CONCURRENCY,
        "secrets": [],
        "state": str(EndpointState.ENABLED),
        "created_at": tx.now,
        "updated_at": tx.now,
        **(columns or {}),
    }


def insert_endpoint(tx: Transaction, row: Mapping[str, Any]) -> None:
    """Writes a new endpoint."""
    tx.execute(sa.insert(endpoints).values(dict(row)))


def count_endpoints(tx: Transaction, tenant: str) -> int:
    """How many a tenant has."""
    statement = sa.select(sa.func.count()).select_from(endpoints).where(_is_theirs, _e.tenant == tenant)
    return int(tx.execute(statement).scalar_one())


def list_endpoints(tx: Transaction, *, tenant: str, before: str | None, limit: int) -> list[dict[str, Any]]:
    """A tenant's endpoints, newest first; not the lanes of callbacks."""
    conditions = [_is_theirs, _e.tenant == tenant]
    if before is not None:
        conditions.append(_e.id < before)
    return tx.rows(sa.select(endpoints).where(*conditions).order_by(_e.id.desc()).limit(limit))


def get_endpoint(tx: Transaction, endpoint_id: str, *, tenant: str, locked: bool = False) -> dict[str, Any]:
    """One endpoint.

    Raises:
        NotFound: There is none, it was deleted, or it is another tenant's.
    """
    statement = sa.select(endpoints).where(_e.id == endpoint_id, _e.tenant == tenant, _is_theirs)
    row = tx.row(statement.with_for_update(key_share=True) if locked else statement)
    if row is None:
        raise NotFound(f"there is no endpoint {endpoint_id!r}")
    return row


def update_endpoint(tx: Transaction, endpoint_id: str, changes: Mapping[str, Any]) -> None:
    """Writes to an endpoint whose row is locked."""
    tx.execute(sa.update(endpoints).where(_e.id == endpoint_id).values({**changes, "updated_at": tx.now}))
