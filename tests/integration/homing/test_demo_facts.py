"""What the demo reads of a fleet's database: the live table's counts, and the proof's history."""

from __future__ import annotations

from homing.demo.evidence import JobFacts, Step, _jobs, _steps
from homing.demo.watching import count_jobs
from jobs.core.states import JobState
from jobs.storage.database import Database
from tests.factories import an_observer, new_job, seen


def test_jobs_are_counted_by_state_by_what_brought_them_home_and_by_who_waits(database: Database) -> None:
    home, _running, _waiting = new_job(database), new_job(database), new_job(database, review_reason="overdue")
    with database.write() as tx:
        an_observer().observe(tx, home["id"], seen(JobState.SUCCEEDED))

    states, home_by, waiting = count_jobs(database)

    assert (sum(states.values()), states["succeeded"]) == (3, 1)
    assert (home_by, waiting) == ({"webhook": 1}, 1)


def test_the_proof_sees_every_job_and_each_applied_step(database: Database) -> None:
    job = new_job(database)
    with database.write() as tx:
        an_observer().observe(tx, job["id"], seen(JobState.SUCCEEDED))

    with database.read() as tx:
        (facts,), steps = _jobs(tx), _steps(tx)

    assert facts == JobFacts(job["id"], "succeeded", facts.provider_job_id, facts.finished_at)
    assert facts.finished_at is not None
    assert steps[-1] == Step(job["id"], steps[-1].before, "succeeded", "webhook")
