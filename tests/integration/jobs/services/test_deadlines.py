"""What the clock says about open jobs."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.clock import FakeClock
from jobs.core.errors import Stale
from jobs.core.policy import OnDeadline, Policy
from jobs.core.states import JobState
from jobs.services.canceling import request_cancel
from jobs.services.deadlines import ring_alarms
from jobs.storage.database import Database, Transaction
from tests.factories import seen
from tests.fakes.provider import NO_KEYS, loses
from tests.fakes.stage import Stage, a_stage

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def a_stage_that(database: Database, clock: FakeClock, on_deadline: OnDeadline) -> Stage:
    return a_stage(database, clock, policy=Policy(on_deadline=on_deadline))


def timed_job(stage: Stage, **columns: object) -> str:
    """A job expected after 10 minutes, worth a look after 30, with a deadline after an hour; nothing else is due."""
    now = stage.clock.now()
    times = {
        "expected_at": now + 10 * MINUTE,
        "review_at": now + 30 * MINUTE,
        "deadline_at": now + HOUR,
        "next_alarm_at": now + 10 * MINUTE,
        "next_submit_at": None,
    }
    return stage.new_job(**{**times, **columns})


def ring_after(stage: Stage, span: timedelta) -> int:
    stage.clock.advance(span)
    return ring_alarms(stage.runtime, 100)


@pytest.fixture
def stage(database: Database, clock: FakeClock) -> Stage:
    return a_stage(database, clock)


def test_each_alarm_rings_once_and_in_its_turn(stage: Stage) -> None:
    job_id = timed_job(stage)

    assert ring_after(stage, 9 * MINUTE) == 0
    assert ring_after(stage, MINUTE) == 1
    assert stage.events(job_id) == ["job.overdue"]
    assert ring_after(stage, 19 * MINUTE) == 0
    assert ring_after(stage, MINUTE) == 1
    assert stage.job(job_id)["review_reason"] == "overdue"
    assert ring_after(stage, 30 * MINUTE) == 1
    assert stage.job(job_id)["review_reason"] == "deadline"
    assert ring_after(stage, 24 * HOUR) == 0

    assert stage.events(job_id) == ["job.overdue", "job.review_requested", "job.review_requested"]
    assert (stage.job(job_id)["state"], stage.job(job_id)["next_alarm_at"]) == ("pending", None)


def test_alarms_missed_while_nobody_swept_are_all_said(stage: Stage) -> None:
    job_id = timed_job(stage)

    assert ring_after(stage, 2 * HOUR) == 1

    assert stage.job(job_id)["overdue_at"] == stage.clock.now()
    assert stage.job(job_id)["review_reason"] == "deadline"


def test_a_review_at_the_deadline_keeps_the_job_open_and_polled(stage: Stage) -> None:
    job_id, run = stage.running_job()

    stage.live(timedelta(hours=2))
    assert (stage.job(job_id)["state"], stage.job(job_id)["review_reason"]) == ("pending", "deadline")
    stage.provider.finish(run)
    stage.live(timedelta(minutes=15), until=job_id)

    assert stage.job(job_id)["state"] == "succeeded"
    assert stage.job(job_id)["review_reason"] is None


@pytest.mark.parametrize(
    ("on_deadline", "state", "error"),
    [
        (OnDeadline.FAIL, "failed", {"code": "deadline"}),
        (OnDeadline.CANCEL, "canceled", None),
    ],
)
def test_a_job_never_sent_ends_at_its_deadline(
    database: Database, clock: FakeClock, on_deadline: OnDeadline, state: str, error: dict[str, str] | None
) -> None:
    stage = a_stage_that(database, clock, on_deadline)
    job_id = timed_job(stage)

    ring_after(stage, HOUR)

    job = stage.job(job_id)
    assert (job["state"], job["finished_at"], job["next_alarm_at"]) == (state, clock.now(), None)
    assert (job["error"] or {}).get("code") == (error or {}).get("code")
    assert stage.history(job_id) == [f"pending>{state} by deadline"]


def test_a_running_job_is_canceled_at_its_deadline_once_confirmed(database: Database, clock: FakeClock) -> None:
    stage = a_stage_that(database, clock, OnDeadline.CANCEL)
    job_id, run = stage.running_job()
    stage.provider.set(run, JobState.RUNNING)

    stage.live(timedelta(minutes=61), until=job_id)

    assert stage.job(job_id)["state"] == "canceled"
    assert stage.provider.runs[run].state is JobState.CANCELED


def test_an_ambiguous_job_keeps_its_review_and_the_wish_until_its_run_is_known(
    database: Database, clock: FakeClock
) -> None:
    stage = a_stage(database, clock, capabilities=NO_KEYS, policy=Policy(on_deadline=OnDeadline.CANCEL))
    stage.provider.script("submit", loses())
    job_id = stage.new_job()
    stage.submit(job_id)

    stage.live(timedelta(hours=2))
    job = stage.job(job_id)
    assert (job["state"], job["review_reason"]) == ("pending", "ambiguous_submit")
    assert job["cancel_requested_at"] is not None
    with stage.database.write() as tx:
        stage.runtime.observer.observe(tx, job_id, seen(JobState.RUNNING, at=clock.now()))
    stage.live(MINUTE)

    assert stage.job(job_id)["state"] == "canceled"


def test_a_users_cancel_that_was_given_up_is_tried_again_at_the_deadline(database: Database, clock: FakeClock) -> None:
    stage = a_stage_that(database, clock, OnDeadline.FAIL)
    job_id, _run = stage.running_job()
    request_cancel(stage.runtime, job_id)
    stage.write(job_id, next_cancel_at=None, cancel_tries=8)

    stage.live(timedelta(minutes=61), until=job_id)

    assert stage.provider.count("cancel") == 1
    assert (stage.job(job_id)["state"], stage.job(job_id)["error"]["code"]) == ("failed", "deadline")


def test_a_job_that_ended_meanwhile_is_left_alone(stage: Stage) -> None:
    job_id, run = stage.running_job()
    with stage.database.write() as tx:
        stage.runtime.observer.observe(tx, job_id, seen(JobState.SUCCEEDED, provider_job_id=run))
    stage.write(job_id, next_alarm_at=stage.clock.now())

    assert ring_alarms(stage.runtime, 10) == 1

    assert stage.job(job_id)["state"] == "succeeded"
    assert stage.job(job_id)["next_alarm_at"] is None
    assert ring_alarms(stage.runtime, 10) == 0


def test_a_pass_is_bounded_and_takes_the_longest_due_first(stage: Stage) -> None:
    late = timed_job(stage, next_alarm_at=stage.clock.now() + 11 * MINUTE)
    early = timed_job(stage)
    stage.clock.advance(20 * MINUTE)

    assert ring_alarms(stage.runtime, 1) == 1

    assert stage.job(early)["overdue_at"] is not None
    assert stage.job(late)["overdue_at"] is None


def test_a_sweeper_that_was_succeeded_writes_nothing(stage: Stage) -> None:
    job_id = timed_job(stage)
    stage.clock.advance(20 * MINUTE)

    def succeeded(_tx: Transaction) -> None:
        raise Stale("a newer epoch")

    with pytest.raises(Stale):
        ring_alarms(stage.runtime, 10, premise=succeeded)

    assert stage.job(job_id)["overdue_at"] is None


def test_one_rows_defect_holds_up_no_other(stage: Stage) -> None:
    broken, fine = timed_job(stage), timed_job(stage)
    stage.clock.advance(20 * MINUTE)
    observe = stage.runtime.observer.observe

    class Picky:
        def observe(self, tx: Transaction, job_id: str, observation: object) -> object:
            if job_id == broken:
                raise KeyError("a defect")
            return observe(tx, job_id, observation)  # type: ignore[arg-type]

    stage.runtime.observer = Picky()  # type: ignore[assignment]

    assert ring_alarms(stage.runtime, 10) == 2

    assert stage.job(fine)["overdue_at"] is not None
    assert stage.job(broken)["next_alarm_at"] == stage.clock.now() + MINUTE


def test_a_provider_that_left_the_configuration_gets_the_mild_rules(stage: Stage) -> None:
    job_id = timed_job(stage)
    stage.runtime.providers = {}

    ring_after(stage, 2 * HOUR)

    assert stage.job(job_id)["review_reason"] == "deadline"
