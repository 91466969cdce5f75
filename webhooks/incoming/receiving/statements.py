"""The receiver's statements, by the driver: SQLAlchemy's own insert costs several times the insert itself.

One interface, two dialects, and one statement for many rows in both: each call of SQLite's driver gives the
interpreter's lock away, to threads that the batch then waits for, and an array as text costs PostgreSQL's client ten
times as much as a binary one. A batch is sorted by its unique key, so that two processes which store the same events
at the same moment wait for each other and do not deadlock.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any

from jobs.storage.database import Transaction
from jobs.storage.metadata import to_microseconds
from webhooks.incoming.events import KnownEvent, NewEvent
from webhooks.incoming.schema import InboxStatus

# Column and its PostgreSQL type, in the order of _said().
_SAID = {
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
}
_NAMES = ", ".join([*_SAID, "duplicates, tries, failures, received_at, next_try_at, processed_at"])
_ONCE = "ON CONFLICT (provider, dedupe_key) DO NOTHING"
#: Rows of one statement on SQLite, which prepares one for each number of rows and keeps them.
_SQLITE_ROWS = 32
_encode = json.JSONEncoder(check_circular=False).encode  # headers are texts by name: nothing could hold itself
_SQLITE_PRESENT = "SELECT id FROM inbox_events WHERE id IN (SELECT value FROM json_each(?))"
# Without an instant of ours the database's own is taken, in the same round trip.
_POSTGRESQL_INSERT = f"""
    INSERT INTO inbox_events ({_NAMES})
    SELECT said.*, 0, 0, 0, clock.us,
        CASE WHEN said.status = '{InboxStatus.ACCEPTED}' THEN clock.us END,
        CASE WHEN said.status <> '{InboxStatus.ACCEPTED}' THEN clock.us END
    FROM unnest({", ".join(f"%b::{kind}[]" for kind in _SAID.values())}) AS said ({", ".join(_SAID)}),
        (SELECT coalesce(%b::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) AS us) AS clock
    {_ONCE} RETURNING id
"""  # noqa: S608
_KNOWN = "SELECT i.provider, i.dedupe_key, i.id, i.digest, i.fact FROM inbox_events AS i"
# A list of pairs would not be looked up in SQLite's index: it would read the whole table.
_SQLITE_KNOWN = f"""
    {_KNOWN} WHERE (i.provider, i.dedupe_key) IN
        (SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?))
"""  # noqa: S608
_POSTGRESQL_KNOWN = f"""
    {_KNOWN} JOIN unnest(%b::text[], %b::text[]) AS k (provider, dedupe_key)
    ON i.provider = k.provider AND i.dedupe_key = k.dedupe_key
"""
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
    in_order = sorted(events, key=lambda event: event.key)
    return _insert_sqlite(tx, in_order) if tx.is_sqlite else _insert_postgresql(tx, in_order)


def _insert_postgresql(tx: Transaction, events: Sequence[NewEvent]) -> set[str]:
    columns = [list(column) for column in zip(*map(_said, events), strict=True)]
    now_us = None if tx.known_now is None else to_microseconds(tx.known_now)
    return {row[0] for row in tx.connection.exec_driver_sql(_POSTGRESQL_INSERT, (*columns, now_us))}


def _insert_sqlite(tx: Transaction, events: Sequence[NewEvent]) -> set[str]:
    now_us, inserted = to_microseconds(tx.now), 0
    for begin in range(0, len(events), _SQLITE_ROWS):
        part = events[begin : begin + _SQLITE_ROWS]
        values = tuple(chain.from_iterable((*_said(event), *_times(event, now_us)) for event in part))
        inserted += tx.connection.exec_driver_sql(_sqlite_insert(len(part)), values).rowcount
    ids = [event.id for event in events]
    if inserted == len(ids):
        return set(ids)
    return {row[0] for row in tx.connection.exec_driver_sql(_SQLITE_PRESENT, (json.dumps(ids),))}


@cache
def _sqlite_insert(rows: int) -> str:
    row = f"({', '.join('?' * len(_SAID))}, 0, 0, 0, ?, ?, ?)"
    return f"INSERT INTO inbox_events ({_NAMES}) VALUES {', '.join([row] * rows)} {_ONCE}"  # noqa: S608


def find_known(tx: Transaction, events: Sequence[NewEvent]) -> dict[tuple[str, str], KnownEvent]:
    """The rows that hold the deliveries of these events."""
    keys = sorted({event.key for event in events})
    return {(provider, key): KnownEvent(*known) for provider, key, *known in _rows_of(tx, keys)}


def _rows_of(tx: Transaction, keys: Sequence[tuple[str, str]]) -> Iterator[Sequence[Any]]:
    if tx.is_sqlite:
        yield from tx.connection.exec_driver_sql(_SQLITE_KNOWN, (json.dumps(keys),))
    else:
        columns = tuple(list(column) for column in zip(*keys, strict=True))
        yield from tx.connection.exec_driver_sql(_POSTGRESQL_KNOWN, columns)


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


def _said(event: NewEvent) -> tuple[Any, ...]:
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
        _encode(event.headers),
        event.digest,
        event.fact,
        event.provider_job_id,
        event.status.value,
        event.reason,
    )


def _times(event: NewEvent, now_us: int) -> tuple[int, int | None, int | None]:
    """Received, due and settled at."""
    is_due = event.status is InboxStatus.ACCEPTED
    return now_us, (now_us if is_due else None), (None if is_due else now_us)
