"""Ending a job on request: one wish, carried to the provider until it lands, and never a made-up "canceled"."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from jobs.broker import CANCEL
from jobs.clock import FakeClock
from jobs.core.errors import Conflict, NotFound, Transient
from jobs.core.policy import OnDeadline, Policy
from jobs.core.states import JobState
from jobs.providers.port import Capabilities, Report
from jobs.services.canceling import request_cancel
from jobs.services.work import MAX_TRIES
from jobs.storage.database import Database
from jobs.storage.schema import job_transitions
from tests.factories import TENANT, seen
from tests.fakes.provider import REPLAY, answers, loses, raises, then
from tests.fakes.stage import Stage, a_stage

MINUTE = timedelta(minutes=1)
CANNOT_CANCEL: Capabilities = replace(REPLAY, cancel=False)
BLIP = raises(Transient("HTTP 500"))


@pytest.fixture
def stage(database: Database, clock: FakeClock) -> Stage:
    return a_stage(database, clock)


def failing_stage(database: Database, clock: FakeClock, capabilities: Capabilities = REPLAY) -> Stage:
    policy = Policy(on_deadline=OnDeadline.FAIL, deadline=timedelta(hours=1))
    return a_stage(database, clock, capabilities=capabilities, policy=policy)


def webhook(stage: Stage, job_id: str, state: JobState) -> None:
    with stage.database.write() as tx:
        stage.runtime.observer.observe(tx, job_id, seen(state, at=stage.clock.now()))


def test_a_job_of_which_nothing_was_sent_is_canceled_at_once(stage: Stage) -> None:
    job_id = stage.new_job()

    row = request_cancel(stage.runtime, job_id, tenant=TENANT)

    assert row["state"] == "canceled"
    assert row == stage.job(job_id)
    assert stage.history(job_id) == ["pending>canceled by cancel"]
    assert stage.events(job_id) == ["job.canceled"]
    stage.live(MINUTE)
    assert stage.provider.calls == []


def test_a_running_job_is_canceled_once_the_provider_confirms(stage: Stage) -> None:
    job_id, run = stage.running_job()

    row = request_cancel(stage.runtime, job_id, tenant=TENANT)
    assert (row["state"], row["cancel_requested_at"]) == ("pending", stage.clock.now())
    assert stage.broker.take(CANCEL) == [(job_id,)]
    assert stage.cancel(job_id) == "done"

    assert stage.job(job_id)["state"] == "canceled"
    assert stage.history(job_id) == ["pending>canceled by cancel"]
    assert stage.provider.runs[run].state is JobState.CANCELED


def test_a_submit_that_may_have_arrived_is_not_canceled_at_once(stage: Stage) -> None:
    stage.provider.script("submit", loses())
    job_id = stage.new_job()
    stage.submit(job_id)

    assert request_cancel(stage.runtime, job_id)["state"] == "pending"
    stage.live(MINUTE)

    assert stage.job(job_id)["state"] == "canceled"
    assert stage.provider.only_run.state is JobState.CANCELED


def test_a_cancel_while_the_submit_is_under_way_reaches_the_provider(stage: Stage) -> None:
    """F34: cancel while the job moves from pending on."""
    job_id = stage.new_job()
    stage.provider.script("submit", then(lambda: request_cancel(stage.runtime, job_id)))

    stage.submit(job_id)
    stage.live(MINUTE)

    assert stage.job(job_id)["state"] == "canceled"
    assert stage.provider.count("cancel") == 1


def test_a_second_wish_changes_nothing(stage: Stage) -> None:
    """F34"""
    job_id, _run = stage.running_job()
    first = request_cancel(stage.runtime, job_id)
    stage.clock.advance(1)

    second = request_cancel(stage.runtime, job_id)
    stage.live(MINUTE)

    assert second["version"] == first["version"]
    assert second["cancel_requested_at"] == first["cancel_requested_at"]
    assert stage.provider.count("cancel") == 1


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELED])
def test_a_job_that_has_ended_cannot_be_canceled(stage: Stage, state: JobState) -> None:
    """F34: never a fake "canceled"."""
    job_id, _run = stage.running_job()
    webhook(stage, job_id, state)

    with pytest.raises(Conflict, match=str(state)):
        request_cancel(stage.runtime, job_id)

    assert stage.job(job_id)["state"] == state


def test_another_tenants_job_is_not_there(stage: Stage) -> None:
    job_id, _run = stage.running_job()

    with pytest.raises(NotFound):
        request_cancel(stage.runtime, job_id, tenant="somebody-else")


def test_a_success_that_came_first_stands(stage: Stage) -> None:
    """F34: cancel and success together; the provider has the last word, and it is read."""
    job_id, run = stage.running_job()
    request_cancel(stage.runtime, job_id)
    stage.provider.finish(run)

    assert stage.cancel(job_id) == "too_late"
    stage.live(MINUTE)

    assert stage.job(job_id)["state"] == "succeeded"
    assert stage.job(job_id)["output"] == {"frames": 24}
    assert stage.history(job_id) == ["pending>succeeded by poll"]


def test_a_success_during_the_cancel_makes_one_end(stage: Stage) -> None:
    job_id, run = stage.running_job()
    request_cancel(stage.runtime, job_id)

    def succeeds() -> None:
        stage.provider.finish(run)
        webhook(stage, job_id, JobState.SUCCEEDED)

    stage.provider.script("cancel", then(succeeds))
    stage.live(MINUTE)

    ends = [event for event in stage.events(job_id) if event in ("job.succeeded", "job.canceled", "job.failed")]
    assert ends == ["job.succeeded"]
    assert stage.job(job_id)["state"] == "succeeded"


def test_a_cancel_is_tried_until_it_lands(stage: Stage) -> None:
    """F28: 500, 500, 200 is one logical cancel."""
    job_id, _run = stage.running_job()
    stage.provider.script("cancel", BLIP, BLIP)
    request_cancel(stage.runtime, job_id)

    stage.live(MINUTE)

    assert stage.job(job_id)["state"] == "canceled"
    assert stage.provider.count("cancel") == 3
    assert stage.letters() == []


def test_a_cancel_that_is_taken_without_a_word_is_followed_by_a_read(stage: Stage) -> None:
    job_id, run = stage.running_job()
    stage.provider.script("cancel", answers(None))
    request_cancel(stage.runtime, job_id)

    assert stage.cancel(job_id) == "done"
    stage.provider.set(run, JobState.CANCELED)
    stage.live(MINUTE)

    assert stage.history(job_id) == ["pending>canceled by poll"]
    assert stage.provider.count("cancel") == 1


def test_a_busy_provider_costs_no_try(stage: Stage) -> None:
    job_id, _run = stage.running_job()
    stage.provider.script("cancel", *[raises(Transient("429", retry_after=MINUTE))] * 12)
    request_cancel(stage.runtime, job_id)

    stage.live(timedelta(minutes=30))

    assert stage.job(job_id)["state"] == "canceled"
    assert stage.letters() == []


def test_after_the_last_try_a_dead_letter_waits_and_polling_goes_on(stage: Stage) -> None:
    job_id, run = stage.running_job()
    stage.provider.always("cancel", BLIP)
    request_cancel(stage.runtime, job_id)

    stage.live(timedelta(minutes=20))

    (letter,) = stage.letters()
    assert (letter["kind"], letter["ref"], letter["attempts"]) == ("cancel", job_id, MAX_TRIES)
    assert stage.provider.count("cancel") == MAX_TRIES
    assert stage.job(job_id)["state"] == "pending"
    stage.provider.finish(run)
    stage.live(timedelta(minutes=2), until=job_id)
    assert stage.job(job_id)["state"] == "succeeded"


def test_an_adapters_defect_is_counted(stage: Stage) -> None:
    job_id, _run = stage.running_job()
    stage.provider.always("cancel", raises(RuntimeError("a defect")))
    request_cancel(stage.runtime, job_id)

    stage.live(timedelta(minutes=20))

    (letter,) = stage.letters()
    assert (letter["kind"], stage.provider.count("cancel")) == ("cancel", MAX_TRIES)
    assert "RuntimeError" in letter["reason"]


def test_a_provider_that_cannot_cancel_leaves_the_wish_standing(database: Database, clock: FakeClock) -> None:
    stage = a_stage(database, clock, capabilities=CANNOT_CANCEL)
    job_id, run = stage.running_job()
    request_cancel(stage.runtime, job_id)

    stage.live(timedelta(minutes=5))
    job = stage.job(job_id)
    assert (job["state"], job["next_cancel_at"], stage.provider.count("cancel")) == ("pending", None, 0)
    (row,) = stage.rows(job_transitions, job_id=job_id)
    assert (row["applied"], row["reason"]) == (False, "the provider cannot cancel a run")
    stage.provider.finish(run)
    stage.live(timedelta(minutes=2), until=job_id)

    assert stage.job(job_id)["state"] == "succeeded"


# The deadline's own cancel ----------------------------------------------------------------------------------


def test_a_deadline_cancels_at_the_provider_and_fails_the_job_once(database: Database, clock: FakeClock) -> None:
    """F28: P works for ever, its cancel answers 500, 500, 200: failed once, polling over, one terminal event."""
    stage = failing_stage(database, clock)
    job_id, run = stage.running_job()
    stage.provider.set(run, JobState.RUNNING)
    stage.provider.script("cancel", BLIP, BLIP)

    stage.live(timedelta(hours=2))
    polls = stage.provider.count("status")
    stage.live(timedelta(hours=2))

    job = stage.job(job_id)
    assert (job["state"], job["error"]["code"]) == ("failed", "deadline")
    assert stage.provider.count("cancel") == 3
    assert stage.provider.runs[run].state is JobState.CANCELED
    assert stage.provider.count("status") == polls
    ends = [event for event in stage.events(job_id) if event in ("job.succeeded", "job.canceled", "job.failed")]
    assert ends == ["job.failed"]


def test_a_deadline_whose_cancel_never_lands_fails_the_job_and_leaves_a_letter(
    database: Database, clock: FakeClock
) -> None:
    stage = failing_stage(database, clock)
    job_id, _run = stage.running_job()
    stage.provider.always("cancel", BLIP)

    stage.live(timedelta(hours=2), until=job_id)

    job = stage.job(job_id)
    assert (job["state"], job["error"]["code"]) == ("failed", "deadline")
    assert [letter["kind"] for letter in stage.letters()] == ["cancel"]
    assert (job["next_poll_at"], job["next_cancel_at"], job["next_alarm_at"]) == (None, None, None)


def test_a_deadline_at_a_provider_that_cannot_cancel_fails_the_job(database: Database, clock: FakeClock) -> None:
    stage = failing_stage(database, clock, CANNOT_CANCEL)
    job_id, _run = stage.running_job()

    stage.live(timedelta(minutes=61), until=job_id)

    assert stage.job(job_id)["error"]["code"] == "deadline"


def test_a_run_that_ignores_its_cancel_does_not_hold_the_job_open(database: Database, clock: FakeClock) -> None:
    stage = failing_stage(database, clock)
    job_id, run = stage.running_job()
    stage.provider.always("cancel", answers(Report(run, JobState.RUNNING)))

    stage.live(timedelta(hours=1, minutes=20), until=job_id)

    assert stage.job(job_id)["error"]["code"] == "deadline"


# Runs that outlived their job -------------------------------------------------------------------------------


def given_up_job(stage: Stage) -> tuple[str, str]:
    """Failed at its deadline while its submit was ambiguous; the run is learned of later."""
    stage.provider.script("submit", loses())
    job_id = stage.new_job()
    stage.submit(job_id)
    with stage.database.write() as tx:
        over = seen(JobState.FAILED, source="deadline", provider_job_id=None, attempt=None, at=stage.clock.now())
        stage.runtime.observer.observe(tx, job_id, over)
    return job_id, stage.provider.only_run.id


def test_a_run_of_a_job_that_was_given_up_is_stopped(stage: Stage) -> None:
    job_id, run = given_up_job(stage)
    webhook(stage, job_id, JobState.RUNNING)
    stage.provider.script("cancel", BLIP)

    stage.live(MINUTE)

    assert stage.provider.runs[run].state is JobState.CANCELED
    job = stage.job(job_id)
    assert (job["state"], job["late_outcome"], job["next_cancel_at"], job["next_poll_at"]) == (
        "failed",
        None,
        None,
        None,
    )


def test_a_run_that_finished_after_all_is_read_once_and_its_output_kept(stage: Stage) -> None:
    """Success after we gave up: paid for, so it is kept beside the end."""
    job_id, run = given_up_job(stage)
    webhook(stage, job_id, JobState.RUNNING)
    stage.provider.finish(run)

    stage.live(timedelta(minutes=5))

    job = stage.job(job_id)
    assert (job["state"], job["late_outcome"]["state"]) == ("failed", "succeeded")
    assert job["late_outcome"]["output"] == {"frames": 24}
    assert stage.provider.count("status") == 1
    assert "job.late_outcome_recorded" in stage.events(job_id)
