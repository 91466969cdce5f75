"""Whose turn it is: by a few looks at an index, however much is due."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from jobs.clock import FakeClock
from jobs.ids import new_id
from jobs.storage.database import Database, Transaction
from jobs.storage.jobs import NEW_JOB, lease_jobs
from jobs.storage.schema import jobs
from jobs.storage.turns import _due_of, _turns, due_in_turn, due_tenants
from tests.factories import PROVIDER, T

SECOND = timedelta(seconds=1)
DOUBLINGS = 17  # 131,072


def rows_of(tenant: str, count: int, *, provider: str = PROVIDER, **columns: Any) -> list[dict[str, Any]]:
    """Jobs whose submits are due, one microsecond after another."""
    same = {**NEW_JOB, "tenant": tenant, "provider": provider, "input": {}, "metadata": {}, "deadline_s": 3600.0}
    return [
        {
            **same,
            "id": new_id("job", at=T),
            "deadline_at": T + timedelta(hours=1),
            "created_at": T,
            "next_submit_at": T - timedelta(hours=1) + timedelta(microseconds=number),
            **columns,
        }
        for number in range(count)
    ]


def insert(database: Database, *rows: dict[str, Any]) -> None:
    with database.write() as tx:
        tx.execute(sa.insert(jobs), list(rows))


def multiply(database: Database) -> None:
    """Doubles what there is, again and again."""
    others = [column for column in jobs.c if column.name != "id"]
    with database.write() as tx:
        for number in range(DOUBLINGS):
            copies = sa.select(jobs.c.id + f"-{number}", *others)
            tx.execute(sa.insert(jobs).from_select(["id", *(column.name for column in others)], copies))


def in_turn(tx: Transaction, limit: int, *tenants: str) -> list[str]:
    return [row["tenant"] for row in due_in_turn(tx, "submit", PROVIDER, tenants=tenants, limit=limit)]


def test_tenants_with_due_work_are_found_by_provider(database: Database, clock: FakeClock) -> None:
    later = {"next_submit_at": clock.now() + SECOND}
    insert(database, *rows_of("acme", 3), *rows_of("zeta", 1), *rows_of("acme", 1, provider="other"))
    insert(database, *rows_of("early", 2, **later), *rows_of("mid", 1, next_submit_at=None))

    with database.read() as tx:
        found = due_tenants(tx, "submit", ["other", PROVIDER, "nobody"])
        assert due_tenants(tx, "poll", [PROVIDER]) == {}
        assert due_tenants(tx, "submit", []) == {}

    assert found == {PROVIDER: ["acme", "zeta"], "other": ["acme"]}


def test_more_entries_than_a_statement_has_parts_are_looked_through_as_well(database: Database) -> None:
    """SQLite takes 500 parts of a compound statement."""
    names = [f"entry-{number:03}" for number in range(601)]
    insert(database, *(row for name in (names[0], names[-1]) for row in rows_of("acme", 1, provider=name)))

    with database.read() as tx:
        assert due_tenants(tx, "submit", names) == {names[0]: ["acme"], names[-1]: ["acme"]}


def test_tenants_take_turns_the_longest_due_of_each_first(database: Database, clock: FakeClock) -> None:
    del clock
    insert(database, *rows_of("acme", 5), *rows_of("mid", 1), *rows_of("zeta", 2, next_submit_at=T))

    with database.write() as tx:
        assert in_turn(tx, 9, "zeta", "acme", "mid") == ["zeta", "acme", "mid", "zeta", *["acme"] * 4]
        assert in_turn(tx, 2, "zeta", "acme", "mid") == ["zeta", "acme"]
        assert in_turn(tx, 9, "acme") == ["acme"] * 5
        assert in_turn(tx, 0, "acme") == in_turn(tx, 9) == []
        due = [row["due_at"] for row in due_in_turn(tx, "submit", PROVIDER, tenants=["acme"], limit=5)]
    assert due == sorted(due)


def test_what_somebody_holds_is_not_due(database: Database, clock: FakeClock) -> None:
    held, free = rows_of("acme", 2)
    insert(database, held, free)
    with database.write() as tx:
        lease_jobs(tx, [held["id"]], token="theirs", until=clock.now() + SECOND)

    with database.write() as tx:
        assert [row["id"] for row in due_in_turn(tx, "submit", PROVIDER, tenants=["acme"], limit=9)] == [free["id"]]


@pytest.mark.timeout(180)
def test_a_hundred_thousand_due_jobs_are_not_looked_at_to_find_one(database: Database, clock: FakeClock) -> None:
    insert(database, *rows_of("acme", 1))
    multiply(database)
    insert(database, *rows_of("zeta", 1, next_submit_at=clock.now()))
    if not database.is_sqlite:
        with database.write() as tx:
            tx.execute(sa.text("ANALYZE jobs"))

    with database.read() as tx:
        statements = [
            _turns("submit", [PROVIDER, "other"], now=tx.now),
            _due_of("submit", PROVIDER, "zeta", tx.now).limit(6),
        ]
        plans = [_plan(tx, statement) for statement in statements]
        assert due_tenants(tx, "submit", [PROVIDER]) == {PROVIDER: ["acme", "zeta"]}

    assert all("ix_jobs_turns_next_submit_at" in plan for plan in plans), plans
    assert not any("SCAN jobs" in plan or "Seq Scan on jobs" in plan for plan in plans), plans


def _plan(tx: Transaction, statement: sa.Select[Any]) -> str:
    compiled = statement.compile(tx.connection, compile_kwargs={"literal_binds": True})
    words = "EXPLAIN QUERY PLAN " if tx.is_sqlite else "EXPLAIN "
    return "\n".join(str(tuple(row)) for row in tx.connection.exec_driver_sql(words + str(compiled)))
