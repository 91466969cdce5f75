"""Pooled connections to PostgreSQL: those in doubt are asked, and a dead one is replaced before anybody notices."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy import event

from jobs.clock import SystemClock
from jobs.storage import pings
from jobs.storage.database import Database
from jobs.storage.jobs import has_due_jobs
from jobs.storage.schema import jobs
from tests.factories import new_job
from tests.services.postgresql import PostgresService
from tests.services.waiting import wait_until

pytestmark = [pytest.mark.timeout(120)]


@pytest.fixture
def database(server: PostgresService) -> Iterator[Database]:
    database = Database.connect(server.url("homing"))
    yield database
    database.close()


@pytest.fixture
def asked(database: Database, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every ping."""
    seen: list[str] = []
    ping = database.engine.dialect.do_ping

    def noted(connection: object) -> bool:
        seen.append("ping")
        return ping(connection)  # type: ignore[arg-type]

    monkeypatch.setattr(database.engine.dialect, "do_ping", noted)
    return seen


def session_of(database: Database) -> int:
    with database.read() as tx:
        return int(tx.connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())


def end_session(server: PostgresService, session: int) -> None:
    """As a server that stops ends all of them: by closing its socket."""
    address = server.url("homing").replace("postgresql+psycopg", "postgresql")
    with psycopg.connect(address, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", (session,))
        has_it = "SELECT 1 FROM pg_stat_activity WHERE pid = %s"
        wait_until(lambda: not other.execute(has_it, (session,)).fetchall(), within_s=10.0, what="an end")


def test_a_connection_that_was_in_use_until_just_now_is_not_asked(database: Database, asked: list[str]) -> None:
    first = session_of(database)

    assert session_of(database) == first
    assert asked == []


def test_a_connection_that_has_rested_is_asked(
    database: Database, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = session_of(database)
    monkeypatch.setattr(pings, "_BELIEVED_S", 0.0)

    assert session_of(database) == first
    assert asked == ["ping"]


@pytest.mark.parametrize("believed_s", [0.0, 3600.0], ids=["rested", "just used"])
def test_a_session_that_was_ended_is_replaced_before_anybody_notices(
    server: PostgresService, database: Database, monkeypatch: pytest.MonkeyPatch, believed_s: float
) -> None:
    monkeypatch.setattr(pings, "_BELIEVED_S", believed_s)
    first = session_of(database)
    end_session(server, first)

    assert session_of(database) != first


def test_all_sessions_of_a_pool_that_were_ended_are_replaced_before_anybody_notices(
    server: PostgresService, database: Database
) -> None:
    with database.read() as one, database.read() as other:
        sessions = [tx.connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one() for tx in (one, other)]
    for session in sessions:
        end_session(server, session)

    with database.read() as one, database.read() as other:
        fresh = [tx.connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one() for tx in (one, other)]

    assert not set(fresh) & set(sessions)


def test_a_look_for_due_work_is_one_statement_by_the_database_s_clock(database: Database) -> None:
    job_id = new_job(database)["id"]
    _make_due(database, job_id, in_s=-1)
    statements = _statements(database)

    assert _is_any_due(database)
    assert len(statements) == 1

    _make_due(database, job_id, in_s=60)
    assert not _is_any_due(database)


def _make_due(database: Database, job_id: str, *, in_s: float) -> None:
    at = SystemClock().now() + timedelta(seconds=in_s)
    with database.write() as tx:
        tx.execute(sa.update(jobs).where(jobs.c.id == job_id).values(next_poll_at=at))


def _is_any_due(database: Database) -> bool:
    with database.read() as tx:
        return has_due_jobs(tx, "poll")


def _statements(database: Database) -> list[str]:
    seen: list[str] = []
    event.listen(database.engine, "before_cursor_execute", lambda _c, _cur, statement, *_rest: seen.append(statement))
    return seen
