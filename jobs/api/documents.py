"""The documents the job routes answer with, for the OpenAPI document; tests hold answers against them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from jobs.core.observations import ReviewReason, Source
from jobs.core.states import JobState


class Document(BaseModel):
    """A document of ours: every field is always there."""

    model_config = ConfigDict(extra="forbid", json_schema_serialization_defaults_required=True)


class Progress(Document):
    """How far the provider says it is."""

    fraction: float | None
    message: str | None


class Failure(Document):
    """Why a job failed: `code` for programs, `message` for people."""

    code: str
    message: str


class SentSubmit(Document):
    """What a submit carried whose outcome nobody knows: to look for its run at the provider."""

    idempotency_key: str
    reference: str = Field(description="The attempt's token; also the end of its callback URL")
    at: AwareDatetime | None


class Review(Document):
    """Why a job waits for a person."""

    reason: ReviewReason
    since: AwareDatetime
    detail: str | None
    sent: SentSubmit | None = Field(None, description="Of `ambiguous_submit`, where one job is asked for")


class LateOutcome(Document):
    """What the provider said after the job had ended."""

    state: JobState
    at: AwareDatetime
    output: Any
    cost: float | None


class Artifact(Document):
    """A result file; its content is at `/v1/artifacts/{id}/content` once it is `stored`."""

    id: str
    state: Literal["pending", "stored", "rejected", "expired"]
    content_type: str | None
    size: int | None
    sha256: str | None
    reason: str | None
    expires_at: str | None


class Job(Document):
    """A job."""

    id: str
    provider: str
    provider_job_id: str | None
    state: JobState
    version: int = Field(description="Grows with every stored change, progress included")
    progress: Progress | None
    input: dict[str, Any]
    output: Any
    error: Failure | None
    metadata: dict[str, Any]
    review: Review | None
    late_outcome: LateOutcome | None
    cancel_requested_at: AwareDatetime | None
    expected_at: AwareDatetime | None
    deadline_at: AwareDatetime
    created_at: AwareDatetime
    submitted_at: AwareDatetime | None
    started_at: AwareDatetime | None
    finished_at: AwareDatetime | None
    attempts: int
    cost: float | None
    artifacts: list[Artifact]
    pipeline: str | None


class ArtifactList(Document):
    """The result files of a job, in the provider's order."""

    data: list[Artifact]
    next_cursor: None


class Transition(Document):
    """An observation that mattered to a job, applied or not."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    from_: JobState = Field(alias="from")
    to: JobState
    source: Source
    at: AwareDatetime
    attempt: int | None
    provider_job_id: str | None
    event_id: str | None
    digest: str | None
    applied: bool
    reason: str | None


class Event(Document):
    """Something that happened; `sequence` counts per job, `position` is its place among all events."""

    id: str
    type: str
    schema_version: int
    sequence: int | None
    position: int
    occurred_at: AwareDatetime
    tenant: str | None
    data: dict[str, Any]


class DeadLetter(Document):
    """Something that exhausted its tries and waits for a person."""

    id: str
    kind: str
    ref: str
    job: str | None
    reason: str
    evidence: dict[str, Any] | None
    attempts: int
    first_failed_at: AwareDatetime
    last_failed_at: AwareDatetime
    redriven_at: AwareDatetime | None
    redriven_by: str | None
    discarded_at: AwareDatetime | None
    discarded_by: str | None


class Redrive(Document):
    """A redrive of many dead letters, and how far it has come."""

    id: str
    state: Annotated[str, Field(description="`running`, `done`, `canceled` or `failed`")]
    filters: dict[str, str]
    rate: str
    total: Annotated[int, Field(description="Open letters that fitted when it was asked for")]
    done: Annotated[int, Field(description="Letters that had their turn: redriven, noop and failed together")]
    redriven: int
    noop: Annotated[int, Field(description="There was nothing to do; `reasons` says why, and how often")]
    failed: int
    reasons: dict[str, int]
    error: Annotated[str | None, Field(description="Why it failed as a whole")]
    asked_by: str
    created_at: AwareDatetime
    finished_at: AwareDatetime | None


class RedrivePage(Document):
    """Redrives, newest first."""

    data: list[Redrive]
    next_cursor: str | None


class Noop(Document):
    """Nothing was done, and why."""

    status: str
    why: str


class JobPage(Document):
    """Jobs, newest first."""

    data: list[Job]
    next_cursor: str | None


class TransitionPage(Document):
    """A job's history, oldest first."""

    data: list[Transition]
    next_cursor: str | None


class EventPage(Document):
    """Events, in commit order."""

    data: list[Event]
    next_cursor: str | None


class DeadLetterPage(Document):
    """Dead letters, newest first."""

    data: list[DeadLetter]
    next_cursor: str | None


class HealTime(Document):
    """Seconds, over the newest jobs that came home by poll."""

    median: float
    worst: float


class Budget(Document):
    """What may be spent at a provider."""

    amount: float
    per: Literal["day", "month"]


class Spend(Document):
    """What your jobs cost at a provider, as far as it said; days and months are UTC."""

    currency: str
    today: float
    month: float
    budget: Budget | None = Field(description="For all who use the account")
    exhausted: bool = Field(description="Nothing new is submitted until the budget begins anew")


class Outage(Document):
    """A provider that gives no usable answer."""

    since: AwareDatetime = Field(description="Since when nothing but probes is sent")
    reason: str = Field(description="What the last call before that came to")
    probes: int = Field(description="How many were sent since")
    next_probe_at: AwareDatetime = Field(description="No earlier")


class Provider(Document):
    """An account at a provider. `home_by` counts your jobs that ended, by whose word it was."""

    name: str
    adapter: str
    paused_at: AwareDatetime | None
    blocked_until: AwareDatetime | None = Field(description="The provider asked for no requests until then")
    outage: Outage | None = Field(description="Where it is away: it is left alone but for probes")
    backlog: int = Field(description="Open jobs")
    jobs: dict[JobState, int]
    home_by: dict[Source, int]
    webhook_share: float | None = Field(description="Of the account's newest jobs, the share that needed no poll")
    webhooks_degraded_at: AwareDatetime | None = Field(description="Since when its webhooks get lost")
    heal_s: HealTime | None = Field(description="How long an end that a poll found may have gone unnoticed")
    error_rate: float | None = Field(description="Of the account's newest jobs, the share that failed")
    spend: Spend


class ProviderPage(Document):
    """Every provider entry you may use; always one page."""

    data: list[Provider]
    next_cursor: None
