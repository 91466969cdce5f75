"""What we learn about a job, from wherever we learn it: one kind of value.

A webhook, a poll, a submit answer, an operator and a clock all become an :class:`Observation`; ``decide`` takes
nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

from jobs.core.states import JobState

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"


class Source(StrEnum):
    """Who said it."""

    SUBMIT = "submit"
    WEBHOOK = "webhook"
    POLL = "poll"
    OPERATOR = "operator"
    DEADLINE = "deadline"
    CANCEL = "cancel"


PROVIDER_SOURCES = frozenset({Source.SUBMIT, Source.WEBHOOK, Source.POLL, Source.CANCEL})


class ReviewReason(StrEnum):
    """Why a job waits for a person."""

    OVERDUE = "overdue"
    AMBIGUOUS_SUBMIT = "ambiguous_submit"
    CONFLICTING_OUTCOME = "conflicting_outcome"
    UNKNOWN_STATUS = "unknown_status"
    DEADLINE = "deadline"
    BUDGET = "budget"
    COMPENSATION_FAILED = "compensation_failed"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the provider says it is: ``fraction`` in [0, 1] or unknown, and a line for people."""

    fraction: float | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class JobError:
    """Why a job failed: a stable ``code`` for programs, a ``message`` for people."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Review:
    """A job's wish to be looked at by a person."""

    reason: ReviewReason
    detail: str
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """A result file the provider offers; ``expires_at`` is its own word (RFC 3339 text) or None."""

    url: str
    content_type: str | None = None
    size_bytes: int | None = None
    sha256: str | None = None
    expires_at: str | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where an observation came from, kept in the job's history."""

    event_id: str | None = None
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """One thing learned about one job.

    Attributes:
        source: Who said it.
        at: When we learned it, aware UTC.
        attempt: The attempt it speaks of; None means the job as a whole (an operator, a clock).
        state: The state it claims, or None where it claims none (an acceptance, a progress report, a wish).
        provider_job_id: The provider's id for the run, where it was named.
        review: A request that a person look at the job.
        resolved_by_person: An operator ends the review (``settle`` or ``acknowledge``).
        overdue: The expected duration has passed.
        cancel_requested: Somebody asked for the end of the job.
        collects: A success whose result files are still to be fetched: it is recorded, and the job ends with them.
        collected: The files of a recorded success are settled; ``state`` says how the job ends.
        must_confirm: It may be less than the provider knows: the status is read before anything is concluded.
        reason: Words for the history row.
    """

    source: Source
    at: datetime
    attempt: int | None = None
    state: JobState | None = None
    provider_job_id: str | None = None
    progress: Progress | None = None
    output: Json = None
    error: JobError | None = None
    cost: float | None = None
    links: tuple[Link, ...] = ()
    review: Review | None = None
    resolved_by_person: bool = False
    overdue: bool = False
    cancel_requested: bool = False
    collects: bool = False
    collected: bool = False
    must_confirm: bool = False
    reason: str | None = None
    evidence: Evidence = field(default_factory=Evidence)
