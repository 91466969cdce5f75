"""Rows of jobs, locked."""

from __future__ import annotations

import pytest

from jobs.core.errors import NotFound
from jobs.storage.database import Database
from jobs.storage.jobs import lock_job, lock_jobs
from tests.factories import new_job


def test_many_are_locked_without_their_inputs_and_one_is_locked_whole(database: Database) -> None:
    """An input may be an image, and a batch is two hundred jobs."""
    jobs = [new_job(database) for _ in range(3)]

    with database.write() as tx:
        many = lock_jobs(tx, [job["id"] for job in jobs])
        whole = lock_job(tx, jobs[0]["id"])

    bare = {job["id"]: {name: value for name, value in job.items() if name != "input"} for job in jobs}
    assert many == bare
    assert whole == jobs[0]


def test_of_those_that_are_not_there_many_are_left_out_and_one_is_missed(database: Database) -> None:
    with database.write() as tx:
        assert lock_jobs(tx, ["job_none"]) == {}
        with pytest.raises(NotFound):
            lock_job(tx, "job_none")
