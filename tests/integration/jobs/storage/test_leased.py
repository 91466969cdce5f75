"""Rows that are work: one holder at a time, and later again each time a start never ends."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa

from jobs.storage.database import Database
from jobs.storage.extra_runs import insert_extra_run
from jobs.storage.leased import LeasedWork
from jobs.storage.schema import extra_runs
from tests.factories import new_job

WORK = LeasedWork(extra_runs, extra_runs.c.next_check_at)
LEASE = timedelta(seconds=30)


@pytest.fixture
def row_id(database: Database) -> str:
    """A row that is due now."""
    job = new_job(database)
    with database.write() as tx:
        insert_extra_run(tx, job_id=job["id"], attempt=1, provider="renders", run="p-2")
        found = tx.row(sa.select(extra_runs.c.id))
    assert found is not None
    return str(found["id"])


def change(database: Database, **columns: object) -> None:
    with database.write() as tx:
        tx.execute(sa.update(extra_runs).values(columns))


def test_what_is_claimed_is_no_longer_due_and_only_its_token_takes_it(database: Database, row_id: str) -> None:
    with database.write() as tx:
        assert WORK.has_due(tx)
        ((claimed, token),) = WORK.claim(tx, 10, until=tx.now + LEASE)

    with database.write() as tx:
        assert (claimed, WORK.has_due(tx), WORK.claim(tx, 10, until=tx.now + LEASE)) == (row_id, False, [])
        assert WORK.take(tx, row_id, held="another", until=tx.now + LEASE) is None
        assert WORK.take(tx, row_id, held=None, until=tx.now + LEASE) is None
        taken = WORK.take(tx, row_id, held=token, until=tx.now + LEASE)
        assert taken is not None
        assert taken["lease_token"] != token
        assert WORK.take(tx, row_id, held=token, until=tx.now + LEASE) is None  # a second copy of the message


@pytest.mark.parametrize(("starts", "after"), [(0, None), (1, 2 * LEASE), (2, 4 * LEASE), (5, 4 * LEASE)])
def test_a_start_that_never_ends_makes_the_row_due_later(
    database: Database, row_id: str, starts: int, after: timedelta | None
) -> None:
    change(database, starts=starts)
    with database.write() as tx:
        now: datetime = tx.now
        before = tx.row(sa.select(extra_runs.c.next_check_at))
        taken = WORK.take(tx, row_id, held=None, until=now + LEASE)

    assert before is not None
    assert taken is not None
    assert taken["starts"] == starts + 1
    assert taken["next_check_at"] == (before["next_check_at"] if after is None else now + after)


def test_a_lease_is_kept_and_given_back_by_its_holder_alone(database: Database, row_id: str) -> None:
    with database.write() as tx:
        taken = WORK.take(tx, row_id, held=None, until=tx.now + LEASE)
        assert taken is not None
        lost = {**taken, "lease_token": "another"}
        assert not WORK.keep(tx, lost, until=tx.now + 2 * LEASE)
        assert WORK.keep(tx, taken, until=tx.now + 2 * LEASE)
        assert not WORK.end(tx, lost, {})
        assert WORK.end(tx, taken, {"next_check_at": None})

    with database.read() as tx:
        row = tx.row(sa.select(extra_runs))
        assert row is not None
        assert (row["lease_token"], row["lease_until"], row["starts"], WORK.has_due(tx)) == (None, None, 0, False)
