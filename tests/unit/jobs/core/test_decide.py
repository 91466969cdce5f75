"""The one door: what each kind of observation does to a job in each state."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jobs.core.decide import DEADLINE_ERROR, decide
from jobs.core.decisions import Decision, JobView, Step, Verdict
from jobs.core.events import EventType
from jobs.core.observations import JobError, Link, Observation, Progress, Review, ReviewReason, Source
from jobs.core.states import TERMINAL, TRANSITIONS, JobState, is_terminal

T = datetime(2026, 1, 1, tzinfo=UTC)
PENDING = JobView(JobState.PENDING, attempt=1)
RUNNING = JobView(JobState.RUNNING, attempt=1, provider_job_id="p-1")
SUCCEEDED = JobView(JobState.SUCCEEDED, attempt=1, provider_job_id="p-1", ended_by=Source.WEBHOOK)
GIVEN_UP = JobView(JobState.FAILED, attempt=1, provider_job_id="p-1", ended_by=Source.DEADLINE)


def seen(state: JobState | None = None, **fields: object) -> Observation:
    facts: dict[str, object] = {"source": Source.WEBHOOK, "at": T, "attempt": 1, "provider_job_id": "p-1"}
    return Observation(**{**facts, "state": state, **fields})  # type: ignore[arg-type]


def fold(job: JobView, observations: list[Observation]) -> tuple[JobView, list[Decision]]:
    decisions = []
    for observation in observations:
        decisions.append(decide(job, observation))
        job = decisions[-1].job
    return job, decisions


# ---------------------------------------------------------------------------------------------- one by one


def test_an_acceptance_stores_the_runs_id_and_tells_that_the_job_was_submitted() -> None:
    decision = decide(PENDING, seen(source=Source.SUBMIT))

    assert decision.changes == {"provider_job_id": "p-1", "submitted_at": T}
    assert decision.events == (EventType.JOB_SUBMITTED,)
    assert decision.step is None


def test_a_success_from_pending_tells_submitted_first_and_invents_no_start() -> None:
    decision = decide(PENDING, seen(JobState.SUCCEEDED, output={"n": 1}))

    assert decision.verdict is Verdict.APPLIED
    assert decision.events == (EventType.JOB_SUBMITTED, EventType.JOB_SUCCEEDED)
    assert decision.changes["output"] == {"n": 1}
    assert decision.changes["finished_at"] == T
    assert "started_at" not in decision.changes


@pytest.mark.parametrize("late", [None, JobState.PENDING, JobState.RUNNING])
def test_an_older_event_after_the_end_changes_nothing(late: JobState | None) -> None:
    """F17: the state never moves back, nor do fields such as progress."""
    decision = decide(SUCCEEDED, seen(late, progress=Progress(0.2)))

    assert decision.changes == {}
    assert decision.events == ()
    assert decision.job == SUCCEEDED


def test_progress_never_moves_back() -> None:
    job, _ = fold(
        RUNNING, [seen(JobState.RUNNING, progress=Progress(0.6)), seen(JobState.RUNNING, progress=Progress(0.4))]
    )

    assert job.progress == Progress(0.6)


def test_two_different_ends_from_the_provider_are_a_conflict_that_a_person_sees() -> None:
    decision = decide(SUCCEEDED, seen(JobState.FAILED))

    assert decision.verdict is Verdict.CONFLICT
    assert decision.job.state is JobState.SUCCEEDED
    assert decision.job.review is ReviewReason.CONFLICTING_OUTCOME
    assert decision.events == (EventType.JOB_OUTCOME_CONFLICTED, EventType.JOB_REVIEW_REQUESTED)
    assert decision.ask_provider


def test_a_success_after_we_gave_up_is_kept_as_a_late_outcome() -> None:
    decision = decide(GIVEN_UP, seen(JobState.SUCCEEDED, output="x", cost=0.02))

    assert decision.verdict is Verdict.LATE
    assert decision.job.state is JobState.FAILED
    assert decision.changes["late_outcome"] == {
        "state": JobState.SUCCEEDED,
        "at": T.isoformat(),
        "output": "x",
        "cost": 0.02,
    }
    assert decision.events == (EventType.JOB_LATE_OUTCOME_RECORDED,)
    assert not decision.ask_provider


def test_the_same_second_end_again_is_only_a_repetition() -> None:
    _, decisions = fold(SUCCEEDED, [seen(JobState.FAILED), seen(JobState.FAILED)])

    assert [d.verdict for d in decisions] == [Verdict.CONFLICT, Verdict.REPEATED]


def test_our_own_cancel_landing_after_we_gave_up_is_no_second_outcome() -> None:
    assert decide(GIVEN_UP, seen(JobState.CANCELED, source=Source.CANCEL)).verdict is Verdict.REPEATED


def test_a_verdict_about_another_attempt_does_not_settle_this_one_but_raises_the_alarm() -> None:
    second = replace(PENDING, attempt=2)

    decision = decide(second, seen(JobState.SUCCEEDED, attempt=1))

    assert decision.verdict is Verdict.OTHER_ATTEMPT
    assert decision.job == second
    assert decision.alarm == "attempt 1 has run p-1 while attempt 2 is the current one"


def test_a_second_run_under_one_attempt_is_kept_alarmed_and_never_applied() -> None:
    decision = decide(RUNNING, seen(JobState.SUCCEEDED, provider_job_id="p-2"))

    assert decision.verdict is Verdict.OTHER_RUN
    assert decision.job == RUNNING
    assert decision.alarm == "attempt 1 has two runs: p-1 and p-2"


def test_an_id_that_comes_after_the_end_is_stored_without_touching_the_state() -> None:
    """F33b: write only the columns you own."""
    ended = replace(SUCCEEDED, provider_job_id=None)

    decision = decide(ended, seen(source=Source.SUBMIT))

    assert decision.changes == {"provider_job_id": "p-1", "submitted_at": T}
    assert decision.job.state is JobState.SUCCEEDED
    assert not decision.stop_run


def test_a_run_accepted_after_we_gave_up_is_stopped_at_the_provider() -> None:
    ended = replace(GIVEN_UP, provider_job_id=None)

    assert decide(ended, seen(source=Source.SUBMIT)).stop_run
    assert not decide(ended, seen(JobState.SUCCEEDED)).stop_run, "a finished run costs nothing more"


def test_the_cancel_that_a_deadline_asked_for_ends_the_job_as_failed() -> None:
    failing = replace(RUNNING, cancel_requested=True, failing=True)

    decision = decide(failing, seen(JobState.CANCELED, source=Source.CANCEL))

    assert decision.job.state is JobState.FAILED
    assert decision.changes["error"] == {"code": "deadline", "message": DEADLINE_ERROR.message}
    assert decision.job.ended_by is Source.DEADLINE


def test_an_unknown_status_word_is_the_reason_when_the_deadline_fails_the_job() -> None:
    """F24: failed with reason unknown_status, the word kept."""
    confused = replace(RUNNING, failing=True, review=ReviewReason.UNKNOWN_STATUS, review_detail="aborted")

    decision = decide(confused, seen(JobState.CANCELED, source=Source.CANCEL))

    assert decision.changes["error"] == {"code": "unknown_status", "message": "aborted"}


def test_a_review_is_asked_for_once_and_a_lesser_reason_does_not_replace_it() -> None:
    unknown = seen(review=Review(ReviewReason.UNKNOWN_STATUS, "aborted"))
    overdue = seen(review=Review(ReviewReason.OVERDUE, "late"))

    job, decisions = fold(RUNNING, [unknown, unknown, overdue])

    assert job.review is ReviewReason.UNKNOWN_STATUS
    assert [d.events for d in decisions] == [(EventType.JOB_REVIEW_REQUESTED,), (), ()]


def test_a_known_status_ends_the_review_of_an_unknown_one() -> None:
    confused = replace(RUNNING, review=ReviewReason.UNKNOWN_STATUS)

    assert decide(confused, seen(JobState.RUNNING)).events == (EventType.JOB_REVIEW_RESOLVED,)


def test_learning_the_runs_id_ends_the_review_of_an_ambiguous_submit() -> None:
    ambiguous = replace(PENDING, review=ReviewReason.AMBIGUOUS_SUBMIT)

    decision = decide(ambiguous, seen(source=Source.WEBHOOK))

    assert decision.job.review is None
    assert decision.events == (EventType.JOB_SUBMITTED, EventType.JOB_REVIEW_RESOLVED)


def test_an_end_ends_every_review() -> None:
    waiting = replace(RUNNING, review=ReviewReason.OVERDUE)

    assert decide(waiting, seen(JobState.SUCCEEDED)).changes["review_reason"] is None


def test_a_second_wish_to_cancel_is_no_news() -> None:
    wish = seen(source=Source.OPERATOR, attempt=None, provider_job_id=None, cancel_requested=True)

    job, decisions = fold(RUNNING, [wish, wish])

    assert job.cancel_requested
    assert [d.verdict for d in decisions] == [Verdict.NOTED, Verdict.UNCHANGED]


def test_a_failure_keeps_the_providers_words() -> None:
    decision = decide(RUNNING, seen(JobState.FAILED, error=JobError("oom", "out of memory")))

    assert decision.changes["error"] == {"code": "oom", "message": "out of memory"}


# ---------------------------------------------------------------------------------------------- collecting


def collecting(**fields: object) -> Decision:
    return decide(RUNNING, seen(JobState.SUCCEEDED, collects=True, output={"n": 1}, cost=0.5, **fields))


def test_a_success_with_files_is_recorded_and_the_job_runs_on() -> None:
    decision = collecting(links=(Link("https://files.example/a"),))

    assert decision.verdict is Verdict.NOTED
    assert decision.job.state is JobState.RUNNING
    assert decision.changes["outcome"] == {"source": Source.WEBHOOK, "output": {"n": 1}}
    assert decision.changes["progress"] == {"fraction": None, "message": "collecting"}
    assert decision.step is not None
    assert decision.step == Step(JobState.RUNNING, JobState.SUCCEEDED, applied=False, reason=decision.step.reason)
    assert "output" not in decision.changes


@pytest.mark.parametrize("source", [Source.DEADLINE, Source.CANCEL, Source.OPERATOR])
@pytest.mark.parametrize("state", [None, JobState.FAILED, JobState.CANCELED])
def test_no_wish_and_no_clock_undoes_a_recorded_success(source: Source, state: JobState | None) -> None:
    wish = seen(state, source=source, attempt=None, provider_job_id=None, cancel_requested=True)

    decision = decide(collecting().job, wish)

    assert (decision.verdict, decision.changes) == (Verdict.UNCHANGED, {})


def test_what_the_provider_says_of_a_recorded_success_is_judged_as_after_the_end() -> None:
    job = collecting().job

    assert decide(job, seen(JobState.SUCCEEDED, collects=True)).verdict is Verdict.REPEATED
    assert decide(job, seen(JobState.RUNNING)).verdict is Verdict.OLDER
    conflict = decide(job, seen(JobState.FAILED))
    assert (conflict.verdict, conflict.job.state) == (Verdict.CONFLICT, JobState.RUNNING)


@pytest.mark.parametrize("end", [JobState.SUCCEEDED, JobState.FAILED])
def test_the_files_end_the_job_by_the_word_that_was_recorded(end: JobState) -> None:
    decision = decide(collecting().job, seen(end, collected=True, output={"n": 1}))

    assert (decision.job.state, decision.job.ended_by) == (end, Source.WEBHOOK)
    assert decision.changes["outcome"] is None
    assert "links" not in decision.changes


def test_a_person_may_end_a_job_that_collects() -> None:
    settled = seen(JobState.CANCELED, source=Source.OPERATOR, attempt=None, resolved_by_person=True)

    assert decide(collecting().job, settled).job.state is JobState.CANCELED


# ------------------------------------------------------------------------------------------------ invariants

states = st.one_of(st.none(), st.sampled_from(JobState))
observations = st.builds(
    Observation,
    source=st.sampled_from(Source),
    at=st.integers(0, 10_000).map(lambda s: T + timedelta(seconds=s)),
    attempt=st.sampled_from([None, 1, 2]),
    state=states,
    provider_job_id=st.sampled_from([None, "p-1", "p-2"]),
    progress=st.one_of(st.none(), st.builds(Progress, st.one_of(st.none(), st.floats(0, 1)))),
    error=st.one_of(st.none(), st.just(JobError("x", "y"))),
    review=st.one_of(st.none(), st.sampled_from(ReviewReason).map(lambda r: Review(r, "detail"))),
    resolved_by_person=st.booleans(),
    overdue=st.booleans(),
    cancel_requested=st.booleans(),
    collects=st.booleans(),
    collected=st.booleans(),
)


@pytest.mark.invariant("I1")
@given(st.lists(observations, max_size=30))
def test_an_end_absorbs_everything_after_it(stream: list[Observation]) -> None:
    job = PENDING
    for observation in stream:
        after = decide(job, observation).job
        if is_terminal(job.state):
            assert after.state is job.state
            assert after.ended_by is job.ended_by
        job = after


@pytest.mark.invariant("I2")
@given(st.lists(observations, max_size=30))
def test_every_applied_step_is_in_the_table(stream: list[Observation]) -> None:
    job = PENDING
    for observation in stream:
        decision = decide(job, observation)
        if decision.step and decision.step.applied:
            assert decision.step.after in TRANSITIONS[decision.step.before]
            assert (decision.step.before, decision.step.after) == (job.state, decision.job.state)
        else:
            assert decision.job.state is job.state
            assert "state" not in decision.changes
        job = decision.job


@pytest.mark.invariant("I3")
@given(st.lists(observations, max_size=20), observations)
@example(
    [seen(None, review=Review(ReviewReason.CONFLICTING_OUTCOME, "detail"))],
    seen(JobState.SUCCEEDED, collected=True, resolved_by_person=True),
)
def test_an_observation_applied_twice_acts_once(stream: list[Observation], last: Observation) -> None:
    job, _ = fold(PENDING, stream)

    once = decide(job, last)
    twice = decide(once.job, last)

    assert twice.job == once.job
    assert twice.events == ()
    assert twice.changes == {}


def _story(truth: JobState) -> list[Observation]:
    """What a provider tells of one run that ends in ``truth``, in order."""
    return [
        seen(JobState.PENDING),
        seen(JobState.RUNNING, progress=Progress(0.3)),
        seen(JobState.RUNNING, progress=Progress(0.8)),
        seen(truth),
    ]


@pytest.mark.invariant("I4")
@given(
    truth=st.sampled_from(sorted(TERMINAL)),
    picks=st.lists(st.integers(0, 3), max_size=25),
)
def test_any_order_loss_or_repetition_of_webhooks_ends_in_the_providers_truth_once_a_poll_ran(
    truth: JobState, picks: list[int]
) -> None:
    story = _story(truth)
    delivered = [story[pick] for pick in picks]
    poll = seen(truth, source=Source.POLL)

    job, decisions = fold(PENDING, [*delivered, poll])

    assert job.state is truth
    assert job.late_state is None
    assert job.review is None
    ends = [event for decision in decisions for event in decision.events if event == f"job.{truth}"]
    assert len(ends) == 1


def test_a_cost_that_is_named_after_the_end_is_added_to_it() -> None:
    first = decide(SUCCEEDED, seen(JobState.SUCCEEDED, source=Source.POLL, cost=0.5))
    again = decide(first.job, seen(JobState.SUCCEEDED, source=Source.POLL, cost=0.7))

    assert (first.verdict, first.changes, first.events) == (Verdict.REPEATED, {"cost": 0.5}, ())
    assert (again.verdict, again.changes) == (Verdict.REPEATED, {})


def test_the_cost_of_another_end_is_not_the_jobs() -> None:
    late = replace(GIVEN_UP, late_state=JobState.SUCCEEDED)

    assert decide(late, seen(JobState.SUCCEEDED, cost=0.5)).changes == {}


def test_a_job_that_waited_for_a_budget_waits_no_more_once_the_provider_has_it() -> None:
    held = replace(PENDING, review=ReviewReason.BUDGET)

    decision = decide(held, seen(source=Source.SUBMIT))

    assert decision.events == (EventType.JOB_SUBMITTED, EventType.JOB_REVIEW_RESOLVED)
    assert decision.job.review is None
