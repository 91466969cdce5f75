"""The limit: the drain's writes by the bare driver, in batches of 100, with no decisions at all.

Per batch one transaction: read due events and their jobs, move the jobs where their version still holds, keep what each
attempt cost and book it, write history and outbox, settle the events. No claim beforehand, no checks, no row that may
fail: nothing can do the same writes in this database and language much faster.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import psycopg
from sqlalchemy.engine import make_url

from jobs.ids import new_id
from jobs.storage.metadata import from_microseconds

_DUE = "SELECT id, raw FROM inbox_events WHERE next_try_at IS NOT NULL ORDER BY next_try_at, id LIMIT 100"
_JOB = (
    "UPDATE jobs SET state = ?, version = version + 1, event_count = event_count + 1, output = ?, cost = ?,"
    " ended_by = 'webhook', links = '[]', finished_at = ?, next_poll_at = NULL, next_alarm_at = NULL"
    " WHERE id = ? AND version = ?"
)
_COST = "UPDATE job_attempts SET cost = ? WHERE job_id = ? AND number = ?"
_SPEND = (
    "INSERT INTO spend (provider, tenant, currency, day, amount) VALUES (?, ?, 'USD', '2026-01-01', ?)"
    " ON CONFLICT (provider, tenant, currency, day) DO UPDATE SET amount = spend.amount + excluded.amount"
)
_STEP = (
    "INSERT INTO job_transitions"
    " (job_id, from_state, to_state, source, at, attempt, provider_job_id, event_id, applied)"
    " VALUES (?, ?, ?, 'webhook', ?, ?, ?, ?, ?)"
)
_OUT = (
    "INSERT INTO outbox (id, tenant, type, schema_version, job_id, provider, sequence, occurred_at, data, relay_tries)"
    " VALUES (?, ?, ?, 1, ?, ?, ?, ?, ?, 0)"
)
_SETTLE = (
    "UPDATE inbox_events SET status = 'applied', tries = 1, next_try_at = NULL, processed_at = ?, job_id = ?,"
    " tenant = ? WHERE id = ?"
)


class _Cursor(Protocol):
    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> Any: ...
    def executemany(self, statement: str, parameters: Sequence[Sequence[Any]], /) -> Any: ...
    def fetchall(self) -> list[Any]: ...


def drain(database_url: str) -> float:
    """Applies everything that is due; returns events a second."""
    begin, count = time.perf_counter(), 0
    commit, cursor, mark = _open(database_url)
    while applied := _batch(cursor, mark):
        commit()
        count += applied
    commit()
    return count / (time.perf_counter() - begin)


def _open(database_url: str) -> tuple[Callable[[], None], _Cursor, Callable[[str], str]]:
    url = make_url(database_url)
    if url.get_backend_name() == "sqlite":
        lite = sqlite3.connect(url.database or "")
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            lite.execute(f"PRAGMA {pragma}")
        return lite.commit, lite.cursor(), str
    connection = psycopg.connect(f"host={url.host} port={url.port} user={url.username} dbname={url.database}")
    return connection.commit, connection.cursor(), lambda statement: statement.replace("?", "%s")


def _batch(cursor: _Cursor, mark: Callable[[str], str]) -> int:
    cursor.execute(_DUE)
    events = [(event_id, json.loads(bytes(raw))) for event_id, raw in cursor.fetchall()]
    if not events:
        return 0
    now = int(time.time() * 1e6)
    jobs = _jobs(cursor, mark, [said["job"] for _, said in events])
    moves = [(event_id, said, jobs[said["job"]]) for event_id, said in events]
    cursor.executemany(mark(_JOB), [_job(said, job, now) for _, said, job in moves])
    cursor.executemany(mark(_COST), [(said["cost"], job[0], job[4]) for _, said, job in moves])
    cursor.execute(mark(_SPEND), (moves[0][2][5], moves[0][2][2], sum(said["cost"] for _, said, _job_row in moves)))
    cursor.executemany(mark(_STEP), [_step(event_id, said, job, now) for event_id, said, job in moves])
    cursor.executemany(mark(_OUT), [_out(said, job, now) for _, said, job in moves])
    cursor.executemany(mark(_SETTLE), [(now, job[0], job[2], event_id) for event_id, _, job in moves])
    return len(moves)


def _jobs(cursor: _Cursor, mark: Callable[[str], str], runs: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    places = ", ".join("?" * len(runs))
    cursor.execute(
        mark(
            "SELECT a.provider_job_id, j.id, j.version, j.tenant, j.state, j.attempt, j.provider, j.event_count"
            f" FROM job_attempts a JOIN jobs j ON j.id = a.job_id WHERE a.provider_job_id IN ({places})"
        ),
        runs,
    )
    return {row[0]: tuple(row[1:]) for row in cursor.fetchall()}


def _job(said: dict[str, Any], job: tuple[Any, ...], now: int) -> tuple[Any, ...]:
    return said["status"], json.dumps(said["output"]), said["cost"], now, job[0], job[1]


def _step(event_id: str, said: dict[str, Any], job: tuple[Any, ...], now: int) -> tuple[Any, ...]:
    return job[0], job[3], said["status"], now, job[4], said["job"], event_id, True


def _out(said: dict[str, Any], job: tuple[Any, ...], now: int) -> tuple[Any, ...]:
    data = json.dumps({"job": {"id": job[0], "state": said["status"], "output": said["output"], "run": said["job"]}})
    return (
        new_id("evt", at=from_microseconds(now)),
        job[2],
        f"job.{said['status']}",
        job[0],
        job[5],
        job[6] + 1,
        now,
        data,
    )
