"""Jobs and events by the thousand, written by the database itself where it can."""

from __future__ import annotations

import time
from collections.abc import Iterator

import sqlalchemy as sa

from benchmarks.signing import PROVIDER, body_of
from jobs.core.signatures.scheme import Verified
from jobs.ids import new_id
from jobs.services.runtime import Runtime
from jobs.storage.database import Database
from webhooks.incoming.events import NewEvent, Origin, new_event
from webhooks.incoming.reading import read_event
from webhooks.incoming.receiving.statements import insert_events

_TENANT = "acme"
_PART = 500
_STATEMENT = 50_000
_MICROSECONDS = 1_000_000
_HOUR_US = 3600 * _MICROSECONDS
_HEADERS = {
    "content-type": "application/json",
    "webhook-id": "",
    "user-agent": "provider/1.0",
    "host": "homing.example",
}

# One statement for both databases; only the literal of an empty JSON object differs.
_JOBS = """
    INSERT INTO jobs (id, tenant, provider, provider_job_id, state, version, attempt, event_count, input, metadata,
        deadline_s, deadline_at, next_alarm_at, failing, next_poll_at, submit_tries, poll_count, poll_failures,
        missing_reads, cancel_tries, starts, created_at, submitted_at, started_at)
    WITH RECURSIVE n (i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n WHERE i < {last})
    SELECT 'job_{prefix}z' || CAST(1000000000 + i AS TEXT), '{tenant}', '{provider}',
        'run-{prefix}-' || CAST(i AS TEXT), 'running', 3, 1, 2, {json}, {json}, 86400.0, {later}, {later}, FALSE,
        {poll}, 0, 0, 0, 0, 0, 0, {now}, {now}, {now}
    FROM n
"""
_ATTEMPTS = """
    INSERT INTO job_attempts (id, job_id, number, provider, idempotency_key, token, sending_at, tries, asks, outcome,
        provider_job_id, beyond_budget, created_at, answered_at)
    SELECT 'att_' || id, id, 1, provider, 'key-' || id, 'token-' || id, created_at, 1, 0, 'accepted',
        provider_job_id, FALSE, created_at, created_at
    FROM jobs WHERE id LIKE 'job_{prefix}z%'
"""


def run_names(prefix: str, count: int) -> Iterator[str]:
    """The runs of :func:`add_jobs`."""
    return (f"run-{prefix}-{number}" for number in range(1, count + 1))


def add_jobs(database: Database, prefix: str, count: int, *, polled: bool = False) -> None:
    """Running jobs with their runs known.

    Args:
        database: Where to.
        prefix: Keeps several fillings apart; letters and digits.
        count: How many.
        polled: Whether they have a next poll, between one and two hours from now, and no attempt rows.
    """
    now = int(time.time() * _MICROSECONDS)
    values = {
        "prefix": prefix,
        "tenant": _TENANT,
        "provider": PROVIDER,
        "json": "'{}'" if database.is_sqlite else "'{}'::json",
        "now": now,
        "later": now + 24 * _HOUR_US,
        "poll": f"{now + _HOUR_US} + CAST(i AS BIGINT) * 7919 % 3600 * {_MICROSECONDS}" if polled else "NULL",
    }
    for begin in range(0, count, _STATEMENT):  # one statement for a million would not end in its time
        part = {**values, "first": begin + 1, "last": min(begin + _STATEMENT, count)}
        with database.write() as tx:
            tx.execute(sa.text(_JOBS.format(**part).replace(":", r"\:")))
    if not polled:
        with database.write() as tx:
            tx.execute(sa.text(_ATTEMPTS.format(prefix=prefix)))
    if not database.is_sqlite:
        with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("ANALYZE jobs, job_attempts")


def add_events(runtime: Runtime, prefix: str, count: int) -> None:
    """Accepted, due events: each says that one of the jobs has succeeded."""
    events = [_event(runtime, run) for run in run_names(prefix, count)]
    with runtime.database.write() as tx:
        for begin in range(0, count, _PART):
            insert_events(tx, events[begin : begin + _PART])
    if not runtime.database.is_sqlite:
        with runtime.database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("ANALYZE inbox_events")


def _event(runtime: Runtime, run: str) -> NewEvent:
    delivery_id = f"msg-{run}"
    raw = body_of(run, delivery_id).encode()
    headers = {**_HEADERS, "webhook-id": delivery_id}
    reading = read_event(runtime.providers[PROVIDER].adapter, raw, headers, limit_bytes=2**20)
    proof = Verified(0, delivery_id, runtime.clock.now())
    origin = Origin(PROVIDER, None, None, "standard-webhooks", proof)
    return new_event(new_id("evt", at=runtime.clock.now()), origin, raw=raw, headers=headers, reading=reading)
