"""The one door, as a pure function: what an observation does to a job.

The rules, in the order they are asked:

1. An observation about another attempt, or about another run under the same attempt, never moves the job. It is
   kept, and a second paid run raises an alarm.
2. A job that has ended absorbs. A different end is kept beside the first (``late_outcome``): a *conflict* where the
   provider contradicts itself, *late* where we had given up before it spoke.
3. States form the lattice ``pending < running < terminal``; only a step up is applied. Order and repetition of
   webhooks and polls therefore cannot matter.
4. A success whose files are still to be fetched is *recorded*, one way: the job runs on as "collecting", what the
   provider says from then on is judged as after the end, and only the files (or a person) end it.
5. Whatever else is new (the run's id, progress, a wish for review, a wish to cancel) is written without a step.

``decide`` folds: ``Decision.job`` is the job afterwards, so a batch of observations can be decided one by one and
written once.
"""

from __future__ import annotations

from dataclasses import replace

from jobs.core.advancing import advance
from jobs.core.decisions import Decision, JobView, Step, Verdict, no_review_columns, review_columns
from jobs.core.events import EventType
from jobs.core.observations import PROVIDER_SOURCES, JobError, Observation, ReviewReason, Source
from jobs.core.states import JobState, is_terminal

_RANK = {JobState.PENDING: 0, JobState.RUNNING: 1, JobState.SUCCEEDED: 2, JobState.FAILED: 2, JobState.CANCELED: 2}

DEADLINE_ERROR = JobError("deadline", "the job's deadline passed before the provider finished it")
UNKNOWN_STATUS_ERROR = "unknown_status"


def decide(job: JobView, seen: Observation) -> Decision:
    """Decides what an observation does to a job. Pure: same arguments, same decision."""
    if seen.attempt is not None and seen.attempt != job.attempt:
        return _other_attempt(job, seen)
    if _names_another_run(job, seen):
        return _other_run(job, seen)
    if is_terminal(job.state):
        return _after_the_end(job, seen)
    if job.recorded_by is not None and not (seen.collected or seen.resolved_by_person):
        return _while_collecting(job, seen, recorded_by=job.recorded_by)
    if seen.state is not None and _RANK[seen.state] < _RANK[job.state]:
        return _kept(job, seen, Verdict.OLDER, f"older: the job is {job.state}")
    return advance(job, _as_deadline(job, seen))


def _names_another_run(job: JobView, seen: Observation) -> bool:
    return None not in (job.provider_job_id, seen.provider_job_id) and job.provider_job_id != seen.provider_job_id


def _kept(job: JobView, seen: Observation, verdict: Verdict, reason: str, *, alarm: str | None = None) -> Decision:
    claimed = seen.state or job.state
    return Decision(verdict, job, step=Step(job.state, claimed, applied=False, reason=reason), alarm=alarm)


def _other_attempt(job: JobView, seen: Observation) -> Decision:
    paid = seen.provider_job_id if seen.source in PROVIDER_SOURCES else None
    alarm = f"attempt {seen.attempt} has run {paid} while attempt {job.attempt} is the current one" if paid else None
    reason = f"speaks of attempt {seen.attempt}, the current one is {job.attempt}"
    return _kept(job, seen, Verdict.OTHER_ATTEMPT, reason, alarm=alarm)


def _other_run(job: JobView, seen: Observation) -> Decision:
    words = f"attempt {job.attempt} has two runs: {job.provider_job_id} and {seen.provider_job_id}"
    return _kept(job, seen, Verdict.OTHER_RUN, words, alarm=words)


def _while_collecting(job: JobView, seen: Observation, *, recorded_by: Source) -> Decision:
    """No wish and no clock undoes a recorded success, and the provider can only repeat or contradict it."""
    if seen.source not in PROVIDER_SOURCES or seen.cancel_requested:
        return Decision(Verdict.UNCHANGED, job)
    ruling = _after_the_end(replace(job, state=JobState.SUCCEEDED, ended_by=recorded_by), seen)
    step = replace(ruling.step, before=job.state) if ruling.step else None
    return replace(ruling, job=replace(ruling.job, state=job.state, ended_by=job.ended_by), step=step)


def _after_the_end(job: JobView, seen: Observation) -> Decision:
    if seen.resolved_by_person:
        return _acknowledged(job)
    if seen.provider_job_id is not None and job.provider_job_id is None:
        return _late_id(job, seen)
    if seen.state is None:
        return Decision(Verdict.UNCHANGED, job)
    if not is_terminal(seen.state):
        return _kept(job, seen, Verdict.OLDER, f"older: the job is {job.state}")
    if seen.state in (job.state, job.late_state) or _is_our_own_cancel(job, seen):
        return _repeated(job, seen)
    return _second_end(job, seen)


def _repeated(job: JobView, seen: Observation) -> Decision:
    """Nothing new but, perhaps, the cost: a webhook seldom names it, a status read after it does."""
    if seen.cost is None or job.cost is not None or seen.state is not job.state:
        return Decision(Verdict.REPEATED, job)
    return Decision(Verdict.REPEATED, replace(job, cost=seen.cost), {"cost": seen.cost})


def _is_our_own_cancel(job: JobView, seen: Observation) -> bool:
    return seen.state is JobState.CANCELED and job.ended_by not in PROVIDER_SOURCES


def _acknowledged(job: JobView) -> Decision:
    if job.review is None:
        return Decision(Verdict.UNCHANGED, job)
    after = replace(job, review=None, review_detail=None)
    return Decision(Verdict.NOTED, after, no_review_columns(), (EventType.JOB_REVIEW_RESOLVED,))


def _late_id(job: JobView, seen: Observation) -> Decision:
    """The run's id comes after the end: keep it, judge the rest, and stop a run nobody waits for."""
    known = replace(job, provider_job_id=seen.provider_job_id)
    rest = _after_the_end(known, replace(seen, provider_job_id=None))
    changes = {"provider_job_id": seen.provider_job_id, "submitted_at": seen.at, **rest.changes}
    verdict = Verdict.NOTED if rest.verdict is Verdict.UNCHANGED else rest.verdict
    still_runs = seen.state is None or not is_terminal(seen.state)
    gave_up = job.ended_by not in PROVIDER_SOURCES
    return replace(rest, verdict=verdict, changes=changes, stop_run=still_runs and gave_up)


def _second_end(job: JobView, seen: Observation) -> Decision:
    outcome = {"state": seen.state, "at": seen.at.isoformat(), "output": seen.output, "cost": seen.cost}
    changes: dict[str, object] = {"late_outcome": outcome}
    after = replace(job, late_state=seen.state)
    step = Step(job.state, seen.state or job.state, applied=False, reason=None)
    if job.ended_by not in PROVIDER_SOURCES:
        step = replace(step, reason="late: Homing had ended the job before")
        return Decision(Verdict.LATE, after, changes, (EventType.JOB_LATE_OUTCOME_RECORDED,), step)
    detail = f"the provider first said {job.state}, then {seen.state}"
    after = replace(after, review=ReviewReason.CONFLICTING_OUTCOME, review_detail=detail)
    changes |= review_columns(ReviewReason.CONFLICTING_OUTCOME, detail, seen.at)
    events = (EventType.JOB_OUTCOME_CONFLICTED, EventType.JOB_REVIEW_REQUESTED)
    step = replace(step, reason=f"conflict: {detail}")
    return Decision(Verdict.CONFLICT, after, changes, events, step, ask_provider=True)


def _as_deadline(job: JobView, seen: Observation) -> Observation:
    """A cancel that the deadline asked for ends the job as failed, not as canceled."""
    if not (job.failing and seen.state is JobState.CANCELED):
        return seen
    return replace(seen, state=JobState.FAILED, source=Source.DEADLINE, error=deadline_error(job))


def deadline_error(job: JobView) -> JobError:
    """Why a job failed at its deadline: the unknown word, where one was the cause, else the deadline."""
    if job.review is ReviewReason.UNKNOWN_STATUS:
        return JobError(UNKNOWN_STATUS_ERROR, job.review_detail or "the provider used a status word we do not know")
    return DEADLINE_ERROR
