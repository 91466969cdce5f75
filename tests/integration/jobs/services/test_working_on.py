"""Fairness: a provider that hangs, and a tenant with thousands of jobs, hold up nobody else."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from jobs.broker import POLL
from jobs.clock import FakeClock
from jobs.core.policy import Policy
from jobs.services.claims import claim_due, claim_next
from jobs.services.polling import poll_job
from jobs.services.submitting.submission import submit_job
from jobs.services.working_on import work_on
from jobs.storage.database import Database
from jobs.storage.schema import jobs
from tests.factories import PROVIDER
from tests.fakes.provider import Effect
from tests.fakes.stage import Stage, a_stage

HOUR = timedelta(hours=1)


@pytest.fixture
def stage(database: Database, clock: FakeClock) -> Stage:
    return a_stage(database, clock, policy=Policy(concurrency=6), others={"calm": Policy(concurrency=6)})


def running(stage: Stage, count: int, **columns: Any) -> list[str]:
    """Jobs whose polls are due; their provider does not know their runs, which is an answer."""
    due = {"next_submit_at": None, "next_poll_at": stage.clock.now(), **columns}
    return [stage.new_job(**due, provider_job_id=f"p-{columns}-{number}") for number in range(count)]


def flood(stage: Stage, **columns: Any) -> None:
    """More than ten thousand queued submits, by doubling one."""
    stage.new_job(next_submit_at=stage.clock.now() - HOUR, **columns)
    others = [column for column in jobs.c if column.name != "id"]
    with stage.database.write() as tx:
        for number in range(14):
            copies = sa.select(jobs.c.id + f"-{number}", *others)
            tx.execute(sa.insert(jobs).from_select(["id", *(column.name for column in others)], copies))


def answers_after(stage: Stage, seconds: float) -> Effect:
    """The provider thinks about it first."""

    def effect(call: Callable[[], Any]) -> Any:
        stage.clock.advance(seconds)
        return call()

    return effect


def test_one_tenants_ten_thousand_submits_do_not_stand_before_anothers_single_one(stage: Stage) -> None:
    """F50: the next sweep, a second later, takes it on, although all the others have waited for longer."""
    flood(stage, tenant="acme")
    single = stage.new_job(tenant="zeta")

    claimed = [job_id for job_id, _token in claim_due(stage.runtime, "submit", 200)]

    assert len(claimed) == 6
    assert single in claimed


def test_where_the_places_are_taken_it_has_the_next(stage: Stage) -> None:
    flood(stage, tenant="acme")
    under_way = claim_due(stage.runtime, "submit", 200)
    single = stage.new_job(tenant="zeta")
    assert claim_due(stage.runtime, "submit", 200) == []
    stage.write(under_way[0][0], lease_token=None, lease_until=None, next_submit_at=None)

    found = claim_next(stage.runtime, "submit", provider=PROVIDER, after="acme")

    assert found is not None
    assert found[0] == single


def test_more_tenants_than_places_are_all_served_in_a_few_passes(stage: Stage) -> None:
    jobs_of = {f"t{number}": stage.new_job(tenant=f"t{number}") for number in range(20)}
    for number in range(20):
        stage.new_job(tenant=f"t{number}")
    served: set[str] = set()

    for _ in range(30):
        for job_id, token in claim_due(stage.runtime, "submit", 200):
            submit_job(stage.runtime, job_id, token)
            served.add(stage.job(job_id)["tenant"])

    assert served == set(jobs_of)


def test_a_provider_with_a_thousand_due_has_six_under_way_and_another_is_claimed_beside_it(stage: Stage) -> None:
    """F50: what hangs is bounded by leases in the database, so two places of a worker's eight are left."""
    running(stage, 100, next_poll_at=stage.clock.now() - HOUR)
    (calm,) = running(stage, 1, provider="calm")

    claimed = [job_id for job_id, _token in claim_due(stage.runtime, "poll", 200)]

    assert len(claimed) == 7
    assert calm in claimed
    assert claim_due(stage.runtime, "poll", 200) == []


def test_who_has_finished_takes_the_next(stage: Stage) -> None:
    due = running(stage, 5)

    done = work_on(stage.runtime, "poll", poll_job, job_id=due[0], lease_token=None)

    assert done == 5
    assert stage.provider.count("status") == 5
    assert stage.broker.take(POLL) == []


def test_after_its_turn_the_queue_has_the_next(stage: Stage) -> None:
    first, _second, third = running(stage, 3)
    stage.provider.script("status", None, answers_after(stage, 2))

    done = work_on(stage.runtime, "poll", poll_job, job_id=first, lease_token=None)

    assert done == 2
    ((job_id, token),) = stage.broker.take(POLL)
    assert job_id == third
    assert str(poll_job(stage.runtime, job_id, token)) == "gone"


def test_a_message_without_work_takes_none_on(stage: Stage) -> None:
    running(stage, 2)
    held = claim_due(stage.runtime, "poll", 1)

    assert work_on(stage.runtime, "poll", poll_job, job_id=held[0][0], lease_token="another") == 0
    assert stage.provider.calls == []
