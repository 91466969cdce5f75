"""Writing events into the outbox, in the transaction of the change they tell of."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from jobs.core.events import SCHEMA_VERSION, EventType
from jobs.ids import new_id
from jobs.storage.bulk import insert_rows
from jobs.storage.database import Transaction
from jobs.storage.jobs import Row
from jobs.storage.schema import outbox


def event_row(
    event_type: EventType,
    *,
    tenant: str | None,
    at: datetime,
    data: dict[str, Any],
    job_id: str | None = None,
    provider: str | None = None,
    sequence: int | None = None,
) -> Row:
    """An outbox row in the making; ``sequence`` is given for events of a job."""
    return {
        "id": new_id("evt", at=at),
        "tenant": tenant,
        "type": str(event_type),
        "schema_version": SCHEMA_VERSION,
        "job_id": job_id,
        "provider": provider,
        "sequence": sequence,
        "occurred_at": at,
        "data": data,
        "relay_tries": 0,
    }


def append_events(tx: Transaction, rows: Sequence[Row]) -> None:
    """Writes events; the relay gives them their position after the commit."""
    insert_rows(tx, outbox, rows)


def append_event(
    tx: Transaction,
    event_type: EventType,
    *,
    tenant: str | None,
    data: dict[str, Any],
    job_id: str | None = None,
    provider: str | None = None,
    sequence: int | None = None,
) -> str:
    """Writes one event and returns its id."""
    row = event_row(
        event_type, tenant=tenant, at=tx.now, data=data, job_id=job_id, provider=provider, sequence=sequence
    )
    append_events(tx, [row])
    return str(row["id"])
