"""Counts over rows, on both databases."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.storage.audit import all_jobs, all_steps
from jobs.storage.database import Database
from jobs.storage.tallies import count_lost_leases, count_reviews, totals
from tests.factories import new_job

LONG = timedelta(seconds=60)


def test_totals_add_up_what_was_counted_by_more_than_one_thing() -> None:
    rows = [{"provider": "a", "state": "running", "count": 2}, {"provider": "b", "state": "running", "count": 3}]

    assert totals(rows, "state") == {"running": 5}
    assert totals(rows, "provider") == {"a": 2, "b": 3}


@pytest.mark.parametrize(("ago", "lost"), [(LONG * 2, 1), (LONG / 2, 0)])
def test_a_lease_is_lost_when_it_ran_out_long_ago(database: Database, ago: timedelta, lost: int) -> None:
    with database.read() as tx:
        now = tx.now
    new_job(database, lease_token="t", lease_until=now - ago)
    new_job(database)

    with database.read() as tx:
        assert count_lost_leases(tx, before=tx.now - LONG) == lost


def test_reviews_are_counted_in_all_states_or_in_some(database: Database) -> None:
    new_job(database, review_reason="overdue")

    with database.read() as tx:
        assert totals(count_reviews(tx), "review_reason") == {"overdue": 1}
        assert not count_reviews(tx, among=["succeeded"])
        assert count_reviews(tx, among=["pending"])


def test_an_audit_reads_every_job_and_what_was_applied_to_it(database: Database) -> None:
    first, second = new_job(database)["id"], new_job(database)["id"]

    with database.read() as tx:
        assert {row["id"] for row in all_jobs(tx)} == {first, second}
        assert all_steps(tx) == []
