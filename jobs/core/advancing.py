"""An open job takes an observation in: what is new is written, and a step up is taken."""

from __future__ import annotations

from dataclasses import replace

from jobs.core.decisions import Decision, JobView, Step, Verdict, no_review_columns, review_columns
from jobs.core.events import STATE_EVENTS, EventType
from jobs.core.observations import Observation, Progress, ReviewReason, Source
from jobs.core.states import JobState, is_terminal, next_state

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

COLLECTING = "collecting"
_RECORDED = "recorded: the provider succeeded, its files are being collected"


def advance(job: JobView, seen: Observation) -> Decision:
    """What an observation about its current attempt and run does to an open job."""
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
    if after is JobState.RUNNING:
        draft.job = replace(draft.job, state=after)
        draft.changes["started_at"] = seen.at
    else:
        _end(draft, seen, after)
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


def _end(draft: _Draft, seen: Observation, state: JobState) -> None:
    cost = draft.job.cost if seen.cost is None else seen.cost
    draft.job = replace(draft.job, state=state, ended_by=seen.source, cost=cost)
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
    if seen.cost is not None:
        draft.changes["cost"] = seen.cost


def _link(link: object) -> dict[str, object]:
    names = ("url", "content_type", "size_bytes", "sha256", "expires_at")
    return {name: getattr(link, name) for name in names}


def _end_review(draft: _Draft, seen: Observation) -> None:
    review = draft.job.review
    if review is None or not _ends_review(review, draft, seen):
        return
    draft.job = replace(draft.job, review=None, review_detail=None)
    draft.changes |= no_review_columns()
    draft.events.append(EventType.JOB_REVIEW_RESOLVED)


def _ends_review(review: ReviewReason, draft: _Draft, seen: Observation) -> bool:
    if seen.resolved_by_person:
        return True
    if seen.collected and review is ReviewReason.CONFLICTING_OUTCOME:
        return False  # the provider contradicted itself while its files were fetched
    if is_terminal(draft.job.state):
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
    draft.changes |= review_columns(seen.review.reason, seen.review.detail, seen.at)
    draft.events.append(EventType.JOB_REVIEW_REQUESTED)
