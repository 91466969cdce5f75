"""A second run under one attempt: alarmed at once, and stopped only where it is ours and nobody's."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from jobs.clock import FakeClock
from jobs.core.errors import Conflict, Transient
from jobs.core.states import JobState
from jobs.providers.port import Capabilities, Report
from jobs.services.creation import NewJob, create_job
from jobs.services.extra_runs import claim_due, stop_extra_run
from jobs.services.keys import Principal, Role
from jobs.services.letters.dead_letters import discard, redrive
from jobs.services.observe import DOUBLE_SUBMIT
from jobs.services.resolving import Action, Resolution, resolve
from jobs.services.work import MAX_TRIES
from jobs.storage.account_schema import spend
from jobs.storage.database import Database
from jobs.storage.schema import extra_runs, job_attempts, provider_accounts
from tests.factories import PROVIDER, TENANT, seen
from tests.fakes.provider import NO_KEYS, NO_KEYS_WITH_SEARCH, Killed, answers, loses, raises, then
from tests.fakes.stage import Stage, a_stage

MINUTE = timedelta(minutes=1)
ADMIN = Principal(TENANT, Role.ADMIN, "key_1")


@pytest.fixture
def stage(database: Database, clock: FakeClock) -> Stage:
    return a_stage(database, clock, capabilities=NO_KEYS)


def a_double_submit(stage: Stage, *, token: str | None = None) -> tuple[str, str, str]:
    """A job, its run, and a second run of the same attempt which a webhook has named."""
    job_id, run = stage.running_job()
    attempt = stage.attempt(job_id)
    extra = stage.provider.begin(key=attempt["idempotency_key"], token=token or attempt["token"]).id
    observe(stage, job_id, extra)
    return job_id, run, extra


def observe(stage: Stage, job_id: str, run: str, **facts: object) -> None:
    with stage.database.write() as tx:
        stage.runtime.observer.observe(tx, job_id, seen(JobState.RUNNING, provider_job_id=run, at=tx.now, **facts))


def row_of(stage: Stage) -> dict[str, object]:
    (row,) = stage.rows(extra_runs)
    return row


def stop(stage: Stage) -> str:
    return str(stop_extra_run(stage.runtime, str(row_of(stage)["id"])))


def canceled(stage: Stage) -> list[str]:
    return [run for method, run in stage.provider.calls if method == "cancel"]


def test_the_second_run_is_alarmed_at_once_and_stopped(stage: Stage) -> None:
    job_id, run, extra = a_double_submit(stage)
    (letter,) = stage.letters(DOUBLE_SUBMIT)
    assert (letter["ref"], row_of(stage)["provider_job_id"]) == (f"{job_id}/{extra}", extra)

    stage.live(MINUTE)

    assert canceled(stage) == [extra]
    assert stage.provider.runs[run].state is JobState.PENDING
    assert (row_of(stage)["settled"], row_of(stage)["state"]) == ("ended", "canceled")
    (letter,) = stage.letters(DOUBLE_SUBMIT)
    assert letter["reason"].endswith(f"{extra}: the run has ended: canceled")
    assert (letter["redriven_at"], letter["discarded_at"]) == (None, None)


def test_a_run_that_is_reported_often_is_one_extra_run(stage: Stage) -> None:
    job_id, _run, extra = a_double_submit(stage)
    stage.live(MINUTE)

    observe(stage, job_id, extra)
    stage.live(MINUTE)

    assert row_of(stage)["settled"] == "ended"
    assert canceled(stage) == [extra]


def test_a_status_read_comes_before_the_cancel(stage: Stage) -> None:
    a_double_submit(stage)

    assert stop(stage) == "canceled"

    assert [method for method, _ in stage.provider.calls[-2:]] == ["status", "cancel"]


def test_a_run_with_a_foreign_reference_is_never_canceled(stage: Stage) -> None:
    """It was posted to our callback address, and another system of the same account began it."""
    _job, _run, extra = a_double_submit(stage)
    stage.provider.set(extra, JobState.RUNNING, reference="somebody-else")

    stage.live(5 * MINUTE)

    assert canceled(stage) == []
    assert row_of(stage)["settled"] == "not_ours"
    assert "another reference" in stage.letters(DOUBLE_SUBMIT)[0]["reason"]


@pytest.mark.parametrize("name", ["token", "idempotency_key"])
def test_our_token_or_key_beside_the_run_proves_it(stage: Stage, name: str) -> None:
    job_id, _run, extra = a_double_submit(stage)
    stage.provider.set(extra, JobState.RUNNING, reference=stage.attempt(job_id)[name])

    stage.live(MINUTE)

    assert canceled(stage) == [extra]


def test_a_run_that_our_search_does_not_find_is_never_canceled(database: Database, clock: FakeClock) -> None:
    stage = a_stage(database, clock, capabilities=NO_KEYS_WITH_SEARCH)
    job_id, _run = stage.running_job()
    extra = stage.provider.begin(key="theirs", token="theirs").id
    observe(stage, job_id, extra)

    stage.live(5 * MINUTE)

    assert canceled(stage) == []
    assert row_of(stage)["settled"] == "not_ours"


def test_a_search_that_lags_is_asked_again_before_the_run_is_called_foreign(
    database: Database, clock: FakeClock
) -> None:
    stage = a_stage(database, clock, capabilities=NO_KEYS_WITH_SEARCH)
    stage.provider.list_lag = timedelta(seconds=20)
    _job, _run, extra = a_double_submit(stage)

    stage.live(2 * MINUTE)

    assert canceled(stage) == [extra]
    assert row_of(stage)["settled"] == "ended"


def test_a_run_our_credential_cannot_see_is_not_ours(stage: Stage) -> None:
    job_id, _run = stage.running_job()
    observe(stage, job_id, "p-of-another-account")

    stage.live(5 * MINUTE)

    assert canceled(stage) == []
    assert row_of(stage)["settled"] == "not_ours"


def test_a_run_that_belongs_to_another_job_is_alarmed_and_left_alone(stage: Stage) -> None:
    job_id, _run = stage.running_job()
    _other, others_run = stage.running_job()

    observe(stage, job_id, others_run)
    stage.live(MINUTE)

    assert stage.rows(extra_runs) == []
    assert canceled(stage) == []
    assert len(stage.letters(DOUBLE_SUBMIT)) == 1


@pytest.mark.parametrize("tenant", [TENANT, "globex"])
def test_a_run_that_became_another_jobs_between_look_and_cancel_is_left_alone(stage: Stage, tenant: str) -> None:
    """It is said whose it is, but only to those whose job that is."""
    _job, _run, extra = a_double_submit(stage)
    other = stage.new_job(next_submit_at=None, tenant=tenant)

    def adopt_it() -> None:
        with stage.database.write() as tx:
            tx.execute(job_attempts.update().where(job_attempts.c.job_id == other).values(provider_job_id=extra))

    stage.provider.script("status", then(adopt_it))
    assert stop(stage) == "not_ours"

    assert canceled(stage) == []
    whose = f"job {other}, attempt 1" if tenant == TENANT else "another tenant's job"
    assert stage.letters(DOUBLE_SUBMIT)[0]["reason"].endswith(f"it belongs to {whose}")


def test_the_run_whose_state_the_job_has_is_never_canceled(stage: Stage) -> None:
    job_id, run, extra = a_double_submit(stage)
    stage.write(job_id, provider_job_id=extra)  # as if a person had settled on it

    stage.live(5 * MINUTE)

    assert canceled(stage) == []
    assert row_of(stage)["settled"] == "not_ours"
    assert stage.provider.runs[run].state is JobState.PENDING


def test_a_run_that_has_ended_is_not_canceled_and_its_cost_is_kept(stage: Stage) -> None:
    _job, _run, extra = a_double_submit(stage)
    stage.provider.finish(extra, cost=0.5)

    assert stop(stage) == "ended"

    assert canceled(stage) == []
    assert (row_of(stage)["state"], row_of(stage)["cost"]) == ("succeeded", 0.5)
    (booked,) = stage.rows(spend)
    assert (booked["provider"], booked["tenant"], booked["amount"]) == (PROVIDER, TENANT, 0.5)


def test_a_cancel_that_comes_too_late_reads_how_the_run_ended(stage: Stage) -> None:
    _job, _run, extra = a_double_submit(stage)
    stage.provider.script("status", then(lambda: stage.provider.finish(extra, cost=0.25)))

    stage.live(MINUTE)

    assert (row_of(stage)["settled"], row_of(stage)["state"], row_of(stage)["cost"]) == ("ended", "succeeded", 0.25)


def test_a_provider_that_cannot_cancel_leaves_it_to_a_person(database: Database, clock: FakeClock) -> None:
    stage = a_stage(database, clock, capabilities=replace(NO_KEYS, cancel=False))
    a_double_submit(stage)

    assert stop(stage) == "left"

    assert canceled(stage) == []
    assert "cannot cancel" in stage.letters(DOUBLE_SUBMIT)[0]["reason"]


def test_a_provider_that_keeps_failing_leaves_it_to_a_person(stage: Stage) -> None:
    a_double_submit(stage)
    stage.provider.always("cancel", raises(Transient("503")))

    stage.live(timedelta(minutes=30))

    assert len(canceled(stage)) == MAX_TRIES
    assert row_of(stage)["settled"] == "left"
    assert "given up after" in stage.letters(DOUBLE_SUBMIT)[0]["reason"]


def test_an_adapter_s_slip_is_not_held_against_its_provider(stage: Stage) -> None:
    """It says nothing of whether the provider is there: no breaker counts it, and it has no more tries for it."""
    job_id, _run, _extra = a_double_submit(stage)
    stage.write(job_id, next_poll_at=None)
    stage.provider.always("status", raises(ValueError("a slip")))

    stage.live(timedelta(minutes=30))

    assert stage.rows(provider_accounts, name=PROVIDER)[0]["failures"] is None
    assert (row_of(stage)["settled"], row_of(stage)["tries"]) == ("left", MAX_TRIES)


def test_an_answer_about_another_run_proves_nothing(stage: Stage) -> None:
    a_double_submit(stage)
    stage.provider.script("status", answers(Report("p-9", JobState.RUNNING)))

    assert stop(stage) == "retry"

    assert canceled(stage) == []


@pytest.mark.parametrize("error", [Transient("no"), ValueError("an adapter's slip")])
def test_what_is_no_answer_is_asked_again(stage: Stage, error: Exception) -> None:
    a_double_submit(stage)
    stage.provider.script("status", raises(error))

    assert stop(stage) == "retry"
    stage.live(MINUTE)

    assert row_of(stage)["settled"] == "ended"


def test_an_account_that_asked_to_be_left_alone_is(stage: Stage) -> None:
    a_double_submit(stage)
    stage.provider.script("status", raises(Transient("429", retry_after=timedelta(minutes=5))))
    stop(stage)
    calls = len(stage.provider.calls)

    stage.live(4 * MINUTE)

    assert len(stage.provider.calls) == calls


@pytest.mark.parametrize("method", ["status", "cancel"])
@pytest.mark.parametrize("effect", [raises(Killed()), loses(Killed())])
def test_a_kill_anywhere_is_taken_up_again(stage: Stage, method: str, effect: object) -> None:
    _job, _run, extra = a_double_submit(stage)
    stage.provider.script(method, effect)  # type: ignore[arg-type]
    with pytest.raises(Killed):
        stop(stage)
    assert stop(stage) == "nothing"

    stage.end_leases()
    stage.live(MINUTE)

    assert row_of(stage)["settled"] == "ended"
    assert stage.provider.runs[extra].state is JobState.CANCELED


def test_a_message_that_comes_twice_does_its_work_once(stage: Stage) -> None:
    a_double_submit(stage)
    ((extra_id, token),) = claim_due(stage.runtime, 10)

    assert str(stop_extra_run(stage.runtime, extra_id, token)) == "canceled"
    assert str(stop_extra_run(stage.runtime, extra_id, token)) == "nothing"


# What a person decides ---------------------------------------------------------------------------------------


def letter_id(stage: Stage) -> str:
    return str(stage.letters(DOUBLE_SUBMIT)[0]["id"])


def test_a_redrive_tries_again_what_was_left(stage: Stage) -> None:
    _job, _run, extra = a_double_submit(stage)
    stage.provider.always("cancel", raises(Transient("503")))
    stage.live(timedelta(hours=2))
    stage.provider.heal("cancel")

    assert redrive(stage.runtime, ADMIN, letter_id(stage)).why_not is None
    stage.live(MINUTE)

    assert stage.provider.runs[extra].state is JobState.CANCELED


def test_a_redrive_of_a_run_that_has_ended_does_nothing(stage: Stage) -> None:
    a_double_submit(stage)
    stage.live(MINUTE)

    why_not = redrive(stage.runtime, ADMIN, letter_id(stage)).why_not

    assert why_not is not None
    assert "has ended" in why_not


def test_a_redrive_of_another_jobs_run_says_what_to_do(stage: Stage) -> None:
    job_id, _run = stage.running_job()
    _other, others_run = stage.running_job()
    observe(stage, job_id, others_run)

    why_not = redrive(stage.runtime, ADMIN, letter_id(stage)).why_not

    assert why_not is not None
    assert "another job" in why_not


def test_a_discard_leaves_the_run_alone(stage: Stage) -> None:
    a_double_submit(stage)

    assert discard(stage.runtime, ADMIN, letter_id(stage)).why_not is None
    stage.live(5 * MINUTE)

    assert canceled(stage) == []
    assert row_of(stage)["settled"] == "left"


def test_a_run_that_is_being_stopped_cannot_be_adopted(stage: Stage) -> None:
    _job, _run, extra = a_double_submit(stage)

    with pytest.raises(Conflict):
        create_job(stage.runtime, tenant=TENANT, body=NewJob(PROVIDER, adopt=extra), key=None)


# An attempt that was given up --------------------------------------------------------------------------------


def resubmit(stage: Stage, job_id: str) -> None:
    with stage.database.write() as tx:
        tx.execute(
            extra_runs.metadata.tables["jobs"]
            .update()
            .values(review_reason="overdue", review_detail="slow", review_since=tx.now)
        )
    resolve(stage.runtime, job_id, tenant=TENANT, decided=Resolution(Action.RESUBMIT, "it hangs", by="key_1"))


def test_a_resubmit_stops_the_run_it_gives_up(stage: Stage) -> None:
    """Nobody polls that run any more, and its webhook may never come: it would cost money unseen."""
    job_id, first = stage.running_job()
    resubmit(stage, job_id)

    stage.live(MINUTE)

    second = stage.job(job_id)["provider_job_id"]
    assert second != first
    assert canceled(stage) == [first]
    assert stage.provider.runs[second].state is JobState.PENDING
    assert stage.letters() == []


def test_the_cost_of_a_given_up_run_is_its_attempts(stage: Stage) -> None:
    job_id, first = stage.running_job()
    resubmit(stage, job_id)
    stage.provider.finish(first, cost=0.5)

    stage.live(MINUTE)

    costs = {row["number"]: row["cost"] for row in stage.rows(job_attempts, job_id=job_id)}
    assert costs == {1: 0.5, 2: None}
    assert [row["amount"] for row in stage.rows(spend)] == [0.5]


@pytest.mark.parametrize("capabilities", [NO_KEYS, NO_KEYS_WITH_SEARCH])
def test_a_lost_run_that_turns_up_after_a_resubmit_is_stopped(
    database: Database, clock: FakeClock, capabilities: Capabilities
) -> None:
    """A person tried anew while nobody knew whether the first submit had arrived. It had."""
    stage = a_stage(database, clock, capabilities=capabilities)
    stage.provider.list_lag = timedelta(hours=1)
    stage.provider.script("submit", loses())
    job_id = stage.new_job()
    stage.live(5 * MINUTE)
    assert stage.job(job_id)["review_reason"] == "ambiguous_submit"
    lost = stage.provider.only_run.id
    resubmit(stage, job_id)
    stage.live(MINUTE)
    stage.provider.list_lag = timedelta(0)

    observe(stage, job_id, lost)
    stage.live(MINUTE)

    assert canceled(stage) == [lost]
    assert len(stage.letters(DOUBLE_SUBMIT)) == 1
