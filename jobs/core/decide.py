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

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from jobs.core.events import STATE_EVENTS, EventType
from jobs.core.observations import PROVIDER_SOURCES, JobError, Observation, Progress, ReviewReason, Source
from jobs.core.states import JobState, is_terminal, next_state

_RANK = {JobState.PENDING: 0, JobState.RUNNING: 1, JobState.SUCCEEDED: 2, JobState.FAILED: 2, JobState.CANCELED: 2}

# The more a reason says, the longer it stays: a job whose submit is ambiguous is not merely overdue.
_REVIEW_RANK = {
    ReviewReason.OVERDUE: 0,
    ReviewReason.DEADLINE: 1,
    ReviewReason.UNKNOWN_STATUS: 2,
    ReviewReason.BUDGET: 3,
    ReviewReason.AMBIGUOUS_SUBMIT: 4,
    ReviewReason.COMPENSATION_FAILED: 5,
    ReviewReason.CONFLICTING_OUTCOME: 6,
}

DEADLINE_ERROR = JobError("deadline", "the job's deadline passed before the provider finished it")
UNKNOWN_STATUS_ERROR = "unknown_status"

COLLECTING = "collecting"
_RECORDED = "recorded: the provider succeeded, its files are being collected"


class Verdict(StrEnum):
    """What became of an observation."""

    APPLIED = "applied"  # the state moved
    NOTED = "noted"  # something other than the state was written
    UNCHANGED = "unchanged"  # nothing new
    REPEATED = "repeated"  # an end we already know
    OLDER = "older"  # the job is further on
    LATE = "late"  # an end, after we had given up
    CONFLICT = "conflict"  # an end that contradicts the provider's first
    OTHER_ATTEMPT = "other_attempt"
    OTHER_RUN = "other_run"


@dataclass(frozen=True, slots=True)
class JobView:
    """What ``decide`` needs to know of a job.

    Attributes:
        ended_by: Source of the terminal state, None while open.
        recorded_by: Source of a success whose files are being fetched; None where there is none.
        failing: The deadline passed under ``on_deadline = "fail"``; a cancel is on its way, and the provider's
            "canceled" will mean ``failed``.
    """

    state: JobState
    attempt: int
    provider_job_id: str | None = None
    progress: Progress | None = None
    review: ReviewReason | None = None
    review_detail: str | None = None
    ended_by: Source | None = None
    recorded_by: Source | None = None
    late_state: JobState | None = None
    cancel_requested: bool = False
    failing: bool = False
    overdue: bool = False
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A row of history: an observation that mattered, applied or not."""

    before: JobState
    after: JobState
    applied: bool
    reason: str | None


@dataclass(frozen=True, slots=True)
class Decision:
    """What to write.

    Attributes:
        job: The job afterwards.
        changes: Columns of the job to write; empty means that the job row stays as it is.
        events: Types of the events to write, in order.
        step: The history row, if any.
        ask_provider: The provider contradicted itself: read the status once more with our own credential.
        stop_run: The job is over and the provider still works on it: cancel the run.
        alarm: Words for a dead letter of kind ``double_submit``.
    """

    verdict: Verdict
    job: JobView
    changes: Mapping[str, object] = field(default_factory=dict)
    events: tuple[EventType, ...] = ()
    step: Step | None = None
    ask_provider: bool = False
    stop_run: bool = False
    alarm: str | None = None


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
    return _advance(job, _as_deadline(job, seen))


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
    return Decision(Verdict.NOTED, after, _no_review(), (EventType.JOB_REVIEW_RESOLVED,))


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
    changes |= _review(ReviewReason.CONFLICTING_OUTCOME, detail, seen.at)
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


def _advance(job: JobView, seen: Observation) -> Decision:
    draft = _Draft(job)
    _learn_id(draft, seen)
    _learn_wishes(draft, seen)
    _learn_progress(draft, seen)
    step = _step(draft, seen)
    _end_review(draft, seen)
    _begin_review(draft, seen)
    verdict = Verdict.APPLIED if step and step.applied else Verdict.NOTED if draft.changes else Verdict.UNCHANGED
    return Decision(verdict, draft.job, draft.changes, tuple(draft.events), step)


class _Draft:
    """A decision in the making; lives only inside one call of ``decide``."""

    __slots__ = ("changes", "events", "job")

    def __init__(self, job: JobView) -> None:
        self.job = job
        self.changes: dict[str, object] = {}
        self.events: list[EventType] = []


def _learn_id(draft: _Draft, seen: Observation) -> None:
    if seen.provider_job_id is None or draft.job.provider_job_id is not None:
        return
    draft.job = replace(draft.job, provider_job_id=seen.provider_job_id)
    draft.changes |= {"provider_job_id": seen.provider_job_id, "submitted_at": seen.at}
    draft.events.append(EventType.JOB_SUBMITTED)


def _learn_wishes(draft: _Draft, seen: Observation) -> None:
    if seen.cancel_requested and not draft.job.cancel_requested:
        draft.job = replace(draft.job, cancel_requested=True)
        draft.changes["cancel_requested_at"] = seen.at
    if _deadline_wants_failure(seen) and not draft.job.failing:
        draft.job = replace(draft.job, failing=True)
        draft.changes["failing"] = True
    if seen.overdue and not draft.job.overdue:
        draft.job = replace(draft.job, overdue=True)
        draft.changes["overdue_at"] = seen.at
        draft.events.append(EventType.JOB_OVERDUE)


def _deadline_wants_failure(seen: Observation) -> bool:
    return seen.cancel_requested and seen.source is Source.DEADLINE and seen.error is not None


def _learn_progress(draft: _Draft, seen: Observation) -> None:
    new, old = seen.progress, draft.job.progress
    if new is None or new == old or not _is_further(old, new):
        return
    draft.job = replace(draft.job, progress=new)
    draft.changes["progress"] = {"fraction": new.fraction, "message": new.message}


def _is_further(old: Progress | None, new: Progress) -> bool:
    """Progress never goes back: an older report may arrive after a newer one."""
    if old is None or old.fraction is None:
        return True
    return new.fraction is not None and new.fraction >= old.fraction


def _step(draft: _Draft, seen: Observation) -> Step | None:
    if seen.state is None or seen.state is draft.job.state:
        return None
    if seen.collects and seen.state is JobState.SUCCEEDED and not (seen.collected or seen.resolved_by_person):
        return _record(draft, seen)
    before, after = draft.job.state, next_state(draft.job.state, seen.state)
    draft.changes["state"] = after
    draft.events.append(STATE_EVENTS[after])
    draft.job = replace(draft.job, state=after)
    if after is JobState.RUNNING:
        draft.changes["started_at"] = seen.at
    else:
        _end(draft, seen)
    return Step(before, after, applied=True, reason=seen.reason)


def _record(draft: _Draft, seen: Observation) -> Step:
    """Keeps a success until its files are in; a job that had not begun has run, whatever nobody told us."""
    before, fraction = draft.job.state, draft.job.progress.fraction if draft.job.progress else None
    progress = Progress(fraction, COLLECTING)
    draft.job = replace(draft.job, state=JobState.RUNNING, recorded_by=seen.source, progress=progress)
    draft.changes |= {
        "outcome": {"source": seen.source, "output": seen.output},
        "links": [_link(link) for link in seen.links],
        "progress": {"fraction": fraction, "message": COLLECTING},
    }
    _learn_cost(draft, seen)
    if before is JobState.RUNNING:
        return Step(before, JobState.SUCCEEDED, applied=False, reason=_RECORDED)
    draft.changes |= {"state": next_state(before, JobState.RUNNING), "started_at": seen.at}
    draft.events.append(EventType.JOB_STARTED)
    return Step(before, JobState.RUNNING, applied=True, reason=_RECORDED)


def _learn_cost(draft: _Draft, seen: Observation) -> None:
    if seen.cost is not None:
        draft.job = replace(draft.job, cost=seen.cost)
        draft.changes["cost"] = seen.cost


def _end(draft: _Draft, seen: Observation) -> None:
    draft.job = replace(draft.job, ended_by=seen.source)
    error = {"code": seen.error.code, "message": seen.error.message} if seen.error else None
    draft.changes |= {
        "ended_by": seen.source,
        "finished_at": seen.at,
        "output": seen.output,
        "error": error,
    }
    if draft.job.recorded_by is not None:
        draft.changes["outcome"] = None  # what it held is where it belongs now, and the links were kept before
    else:
        draft.changes["links"] = [_link(link) for link in seen.links]
    _learn_cost(draft, seen)


def _link(link: object) -> dict[str, object]:
    names = ("url", "content_type", "size_bytes", "sha256", "expires_at")
    return {name: getattr(link, name) for name in names}


def _end_review(draft: _Draft, seen: Observation) -> None:
    review = draft.job.review
    if review is None or not _ends_review(review, draft, seen):
        return
    draft.job = replace(draft.job, review=None, review_detail=None)
    draft.changes |= _no_review()
    draft.events.append(EventType.JOB_REVIEW_RESOLVED)


def _ends_review(review: ReviewReason, draft: _Draft, seen: Observation) -> bool:
    if seen.collected and review is ReviewReason.CONFLICTING_OUTCOME:
        return False  # the provider contradicted itself while its files were fetched
    if is_terminal(draft.job.state) or seen.resolved_by_person:
        return True
    if review in (ReviewReason.AMBIGUOUS_SUBMIT, ReviewReason.BUDGET):
        return "provider_job_id" in draft.changes
    return review is ReviewReason.UNKNOWN_STATUS and seen.state is not None and seen.review is None


def _begin_review(draft: _Draft, seen: Observation) -> None:
    if seen.review is None or seen.resolved_by_person or is_terminal(draft.job.state):
        return
    current = draft.job.review
    if current is not None and _REVIEW_RANK[current] >= _REVIEW_RANK[seen.review.reason]:
        return
    draft.job = replace(draft.job, review=seen.review.reason, review_detail=seen.review.detail)
    draft.changes |= _review(seen.review.reason, seen.review.detail, seen.at)
    draft.events.append(EventType.JOB_REVIEW_REQUESTED)


def _review(reason: ReviewReason, detail: str, since: datetime) -> dict[str, object]:
    return {"review_reason": reason, "review_detail": detail, "review_since": since}


def _no_review() -> dict[str, object]:
    return {"review_reason": None, "review_detail": None, "review_since": None}
