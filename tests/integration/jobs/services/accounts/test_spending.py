"""What jobs cost is kept per attempt and per day, and a spent budget sends nothing new."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from jobs.clock import FakeClock
from jobs.core.policy import OnDeadline, Policy
from jobs.core.spending import Budget, Per
from jobs.core.states import JobState
from jobs.services.accounts.spending import spend_document
from jobs.services.canceling import request_cancel
from jobs.services.job_views import view_of
from jobs.services.resolving import Action, Resolution, resolve
from jobs.storage.account_schema import spend
from jobs.storage.database import Database
from jobs.storage.schema import job_attempts
from tests.factories import PROVIDER, TENANT, seen
from tests.fakes.provider import REPLAY, loses
from tests.fakes.stage import Stage, a_stage

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def a_budget(amount: float = 0.05, per: Per = Per.DAY, **rules: object) -> Policy:
    return Policy(budget=Budget(amount, per), **rules)  # type: ignore[arg-type]


@pytest.fixture
def stage(database: Database, clock: FakeClock) -> Stage:
    return a_stage(database, clock)


def observe(stage: Stage, job_id: str, state: JobState, **facts: object) -> None:
    with stage.database.write() as tx:
        stage.runtime.observer.observe(tx, job_id, seen(state, at=tx.now, **facts))


def booked(stage: Stage) -> dict[str, Any]:
    return {row["day"]: pytest.approx(row["amount"]) for row in stage.rows(spend)}


def spend_now(stage: Stage, cost: float = 0.06) -> None:
    """A job that comes home and costs so much."""
    job_id, run = stage.running_job()
    stage.provider.finish(run, cost=cost)
    stage.poll(job_id)


def resolution(action: Action) -> Resolution:
    return Resolution(action, "the invoice is paid", by="key_1")


# What is known is booked -------------------------------------------------------------------------------------


def test_a_cost_is_kept_with_the_job_and_its_attempt_and_booked_today(stage: Stage) -> None:
    job_id, run = stage.running_job()
    stage.provider.finish(run, cost=0.25)
    stage.poll(job_id)

    assert (stage.job(job_id)["cost"], stage.attempt(job_id)["cost"]) == (0.25, 0.25)
    assert booked(stage) == {"2026-01-01": 0.25}


def test_a_cost_that_grows_is_booked_once(stage: Stage) -> None:
    job_id, run = stage.running_job()
    for cost in (0.1, 0.1, 0.3, 0.2):
        stage.provider.set(run, JobState.RUNNING, cost=cost)
        stage.poll(job_id)

    assert stage.attempt(job_id)["cost"] == 0.3
    assert booked(stage) == {"2026-01-01": 0.3}


def test_two_jobs_add_up_on_their_days(stage: Stage) -> None:
    spend_now(stage, 0.1)
    spend_now(stage, 0.2)
    stage.clock.advance(DAY)
    spend_now(stage, 0.4)

    assert booked(stage) == {"2026-01-01": 0.3, "2026-01-02": 0.4}


def test_a_batch_of_events_books_each_attempts_most(stage: Stage) -> None:
    job_id, run = stage.running_job()
    told = [seen(JobState.RUNNING, provider_job_id=run, cost=cost) for cost in (0.1, 0.3, 0.2)]
    with stage.database.write() as tx:
        stage.runtime.observer.observe_many(tx, [(job_id, one) for one in told])

    assert booked(stage) == {"2026-01-01": 0.3}


def test_a_late_outcome_is_paid_for_all_the_same(stage: Stage) -> None:
    """We had given up, and the provider worked to the end."""
    job_id, run = stage.running_job()
    observe(stage, job_id, JobState.FAILED, source="deadline", attempt=None, provider_job_id=None)
    observe(stage, job_id, JobState.SUCCEEDED, provider_job_id=run, cost=0.5)

    job = stage.job(job_id)
    assert (job["state"], job["cost"], job["late_outcome"]["cost"]) == ("failed", None, 0.5)
    assert stage.attempt(job_id)["cost"] == 0.5
    assert booked(stage) == {"2026-01-01": 0.5}


def test_a_status_read_after_the_webhook_adds_the_cost(stage: Stage) -> None:
    job_id, run = stage.running_job()
    observe(stage, job_id, JobState.SUCCEEDED, provider_job_id=run)
    version = stage.job(job_id)["version"]
    observe(stage, job_id, JobState.SUCCEEDED, provider_job_id=run, cost=0.5)

    job = stage.job(job_id)
    assert (job["cost"], job["version"]) == (0.5, version + 1)
    assert view_of(job).cost == 0.5


def test_without_a_budget_no_status_is_read_just_for_the_cost(stage: Stage) -> None:
    job_id, run = stage.running_job()
    observe(stage, job_id, JobState.SUCCEEDED, provider_job_id=run)

    stage.live(HOUR)

    assert stage.provider.count("status") == 0
    assert stage.job(job_id)["next_poll_at"] is None


def test_with_a_budget_it_is_read_once(database: Database, clock: FakeClock) -> None:
    stage = a_stage(database, clock, policy=a_budget(100.0))
    job_id, run = stage.running_job()
    stage.provider.finish(run, cost=0.5)
    observe(stage, job_id, JobState.SUCCEEDED, provider_job_id=run)

    stage.live(HOUR)

    assert stage.provider.count("status") == 1
    assert (stage.job(job_id)["cost"], booked(stage)) == (0.5, {"2026-01-01": 0.5})


def test_a_tenant_sees_what_its_own_jobs_cost(database: Database, clock: FakeClock) -> None:
    stage = a_stage(database, clock, policy=a_budget(1.0))
    spend_now(stage, 0.25)
    entry = stage.runtime.provider(PROVIDER)

    with database.read() as tx:
        ours = spend_document(tx, entry, tenant=TENANT)
        theirs = spend_document(tx, entry, tenant="somebody")

    assert ours == {
        "currency": "USD",
        "today": 0.25,
        "month": 0.25,
        "budget": {"amount": 1.0, "per": "day"},
        "exhausted": False,
    }
    assert (theirs["today"], theirs["month"]) == (0.0, 0.0)


# A spent budget ----------------------------------------------------------------------------------------------


@pytest.fixture
def poor(database: Database, clock: FakeClock) -> Stage:
    """A provider whose budget for today is spent."""
    stage = a_stage(database, clock, policy=a_budget())
    spend_now(stage)
    return stage


def test_a_spent_budget_sends_nothing_and_asks_a_person(poor: Stage) -> None:
    job_id = poor.new_job()

    assert poor.submit(job_id) == "review"

    job = poor.job(job_id)
    assert (job["state"], job["review_reason"]) == ("pending", "budget")
    assert "0.06 of 0.05 USD" in job["review_detail"]
    assert poor.attempt(job_id)["sending_at"] is None
    assert poor.provider.count("submit") == 1
    assert poor.events(job_id)[-1:] == ["job.review_requested"]


def test_what_is_under_way_goes_on(database: Database, clock: FakeClock) -> None:
    stage = a_stage(database, clock, policy=a_budget())
    job_id, run = stage.running_job()
    spend_now(stage)
    stage.provider.finish(run, cost=0.5)

    stage.live(5 * MINUTE)

    assert stage.job(job_id)["state"] == "succeeded"


def test_a_submit_whose_answer_was_lost_is_still_found(database: Database, clock: FakeClock) -> None:
    """The request may have arrived: the same key costs nothing more."""
    stage = a_stage(database, clock, policy=a_budget(), capabilities=REPLAY)
    stage.provider.script("submit", loses())
    job_id = stage.new_job()
    stage.submit(job_id)
    spend_now(stage)

    stage.live(MINUTE)

    assert stage.job(job_id)["provider_job_id"] is not None
    assert stage.job(job_id)["review_reason"] is None


def test_the_next_day_sends_it_and_its_time_begins_then(poor: Stage) -> None:
    job_id = poor.new_job(next_alarm_at=None)
    poor.submit(job_id)
    poor.live(23 * HOUR)
    assert poor.provider.count("submit") == 1

    poor.live(75 * MINUTE)

    job = poor.job(job_id)
    assert (job["provider_job_id"], job["review_reason"]) == ("p-2", None)
    midnight = datetime.fromisoformat("2026-01-02T00:00:00+00:00")
    assert midnight <= job["submitted_at"] < midnight + 11 * MINUTE
    assert job["deadline_at"] - job["submitted_at"] == HOUR
    assert job["next_alarm_at"] == job["deadline_at"]
    assert "job.review_resolved" in poor.events(job_id)


def test_a_month_is_a_month(database: Database, clock: FakeClock) -> None:
    stage = a_stage(database, clock, policy=a_budget(per=Per.MONTH))
    spend_now(stage)
    job_id = stage.new_job(next_alarm_at=None)
    stage.clock.advance(29 * DAY)

    assert stage.submit(job_id) == "review"
    stage.clock.advance(2 * DAY)
    assert stage.submit(job_id) == "accepted"


def test_a_raised_budget_is_noticed_by_itself(poor: Stage, database: Database, clock: FakeClock) -> None:
    job_id = poor.new_job(next_alarm_at=None)
    poor.submit(job_id)
    richer = a_stage(database, clock, policy=a_budget(100.0))
    richer.provider.runs |= poor.provider.runs
    richer.provider.begin(key="another", token="another")  # takes the id that is taken

    richer.live(15 * MINUTE)

    assert richer.job(job_id)["provider_job_id"] is not None


def test_a_person_may_send_it_beyond_the_budget(poor: Stage) -> None:
    job_id = poor.new_job()
    poor.submit(job_id)
    resolve(poor.runtime, job_id, tenant=TENANT, decided=resolution(Action.RESUBMIT))

    assert poor.submit(job_id) == "accepted"

    attempts = poor.rows(job_attempts, job_id=job_id)
    assert {row["number"]: row["beyond_budget"] for row in attempts} == {1: False, 2: True}


def test_a_resubmit_for_another_reason_keeps_to_the_budget(poor: Stage) -> None:
    job_id = poor.new_job()
    poor.write(job_id, review_reason="overdue", review_detail="slow", review_since=poor.clock.now())
    resolve(poor.runtime, job_id, tenant=TENANT, decided=resolution(Action.RESUBMIT))

    assert poor.submit(job_id) == "review"


def test_asking_again_looks_at_the_budget_again(poor: Stage) -> None:
    job_id = poor.new_job()
    poor.submit(job_id)
    resolve(poor.runtime, job_id, tenant=TENANT, decided=resolution(Action.POLL))

    assert poor.submit(job_id) == "review"
    assert poor.job(job_id)["review_reason"] == "budget"


def test_a_job_that_waits_for_its_budget_is_canceled_at_once(poor: Stage) -> None:
    job_id = poor.new_job()
    poor.submit(job_id)

    assert request_cancel(poor.runtime, job_id)["state"] == "canceled"
    assert poor.job(job_id)["review_reason"] is None


@pytest.mark.parametrize(("on_deadline", "state"), [(OnDeadline.FAIL, "failed"), (OnDeadline.CANCEL, "canceled")])
def test_a_deadline_that_ends_jobs_ends_one_that_waits_for_its_budget(
    database: Database, clock: FakeClock, on_deadline: OnDeadline, state: str
) -> None:
    stage = a_stage(database, clock, policy=a_budget(on_deadline=on_deadline))
    spend_now(stage)
    job_id = stage.new_job()
    stage.submit(job_id)

    stage.live(2 * HOUR, until=job_id)

    assert stage.job(job_id)["state"] == state
    assert stage.provider.count("submit") == 1


def test_a_job_that_adopts_a_run_is_not_held_up(poor: Stage) -> None:
    run = poor.provider.begin(key="k", token="t").id
    job_id = poor.new_job(adopt=run)

    assert poor.submit(job_id) == "accepted"
