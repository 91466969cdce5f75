"""What ``decide`` knows of a job, and what it may answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from jobs.core.events import EventType
from jobs.core.observations import Progress, ReviewReason, Source
from jobs.core.states import JobState


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


def review_columns(reason: ReviewReason, detail: str, since: datetime) -> dict[str, object]:
    """The columns of a job that waits for a person."""
    return {"review_reason": reason, "review_detail": detail, "review_since": since}


def no_review_columns() -> dict[str, object]:
    """The columns of a job that waits for nobody."""
    return {"review_reason": None, "review_detail": None, "review_since": None}
