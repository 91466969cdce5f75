"""The receiver's statements, by the driver: SQLAlchemy's own insert costs several times the insert itself.

One interface, two dialects. A batch is sorted by its unique key, so that two processes which store the same events
at the same moment wait for each other and do not deadlock.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from jobs.storage.database import Transaction
from jobs.storage.metadata import to_microseconds
from webhooks.incoming.events import KnownEvent, NewEvent
from webhooks.incoming.schema import InboxStatus, inbox_events

# Column and its PostgreSQL type, in the order of _values().
_COLUMNS = {
    "id": "text",
    "provider": "text",
    "tenant": "text",
    "delivery_id": "text",
    "dedupe_key": "text",
    "token": "text",
    "scheme": "text",
    "secret_index": "int",
    "raw": "bytea",
    "headers": "json",
    "digest": "text",
    "fact": "text",
    "provider_job_id": "text",
    "status": "text",
    "reason": "text",
    "duplicates": "int",
    "tries": "int",
    "failures": "int",
    "next_try_at": "bigint",
    "received_at": "bigint",
    "processed_at": "bigint",
}
_NAMES = ", ".join(_COLUMNS)
_ONCE = "ON CONFLICT (provider, dedupe_key) DO NOTHING"
_SQLITE_INSERT = f"INSERT INTO inbox_events ({_NAMES}) VALUES ({', '.join('?' * len(_COLUMNS))}) {_ONCE}"  # noqa: S608
_SQLITE_PRESENT = "SELECT id FROM inbox_events WHERE id IN (SELECT value FROM json_each(?))"
_ARRAYS = ", ".join(f"%s::{kind}[]" for kind in _COLUMNS.values())
_POSTGRESQL_INSERT = f"INSERT INTO inbox_events ({_NAMES}) SELECT * FROM unnest({_ARRAYS}) {_ONCE} RETURNING id"  # noqa: S608
_SQLITE_COUNT = "UPDATE inbox_events SET duplicates = duplicates + ? WHERE id = ?"
_POSTGRESQL_COUNT = """
    UPDATE inbox_events AS e SET duplicates = e.duplicates + free.copies
    FROM (
        SELECT i.id, u.copies FROM unnest(%s::int[], %s::text[]) AS u (copies, id)
        JOIN inbox_events AS i ON i.id = u.id ORDER BY i.id FOR UPDATE OF i SKIP LOCKED
    ) AS free
    WHERE e.id = free.id RETURNING e.id
"""


def insert_events(tx: Transaction, events: Sequence[NewEvent]) -> set[str]:
    """Stores the events whose delivery is not stored yet; returns their ids."""
    now_us = to_microseconds(tx.now)
    rows = [_values(event, now_us) for event in sorted(events, key=lambda event: event.key)]
    if not tx.is_sqlite:
        columns = tuple(list(column) for column in zip(*rows, strict=True))
        return {row[0] for row in tx.connection.exec_driver_sql(_POSTGRESQL_INSERT, columns)}
    tx.connection.exec_driver_sql(_SQLITE_INSERT, rows)
    ids = json.dumps([event.id for event in events])
    return {row[0] for row in tx.connection.exec_driver_sql(_SQLITE_PRESENT, (ids,))}


def find_known(tx: Transaction, events: Sequence[NewEvent]) -> dict[tuple[str, str], KnownEvent]:
    """The rows that hold the deliveries of these events."""
    table = inbox_events.c
    statement = sa.select(table.provider, table.dedupe_key, table.id, table.digest, table.fact).where(
        sa.tuple_(table.provider, table.dedupe_key).in_(sorted({event.key for event in events}))
    )
    return {(row.provider, row.dedupe_key): KnownEvent(row.id, row.digest, row.fact) for row in tx.execute(statement)}


def count_copies(tx: Transaction, copies: Mapping[str, int]) -> set[str]:
    """Counts repeats on their rows; a row somebody works on is left out, for no receiver waits for a worker.

    Returns:
        The ids counted.
    """
    pairs = [(count, event_id) for event_id, count in sorted(copies.items())]
    if tx.is_sqlite:
        tx.connection.exec_driver_sql(_SQLITE_COUNT, pairs)
        return set(copies)
    columns = tuple(list(column) for column in zip(*pairs, strict=True))
    return {row[0] for row in tx.connection.exec_driver_sql(_POSTGRESQL_COUNT, columns)}


def _values(event: NewEvent, now_us: int) -> tuple[Any, ...]:
    is_due = event.status is InboxStatus.ACCEPTED
    return (
        event.id,
        event.provider,
        event.tenant,
        event.delivery_id,
        event.dedupe_key,
        event.token,
        event.scheme,
        event.secret_index,
        event.raw,
        json.dumps(dict(event.headers)),
        event.digest,
        event.fact,
        event.provider_job_id,
        str(event.status),
        event.reason,
        0,
        0,
        0,
        now_us if is_due else None,
        now_us,
        None if is_due else now_us,
    )
