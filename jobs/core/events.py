"""The events Homing tells the world, past tense, as data.

``docs/reference/events.md`` lists them for readers; ``GET /v1/events`` and handlers deliver them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from jobs.core.states import JobState

SCHEMA_VERSION = 1


class EventType(StrEnum):
    """Every event type this release writes."""

    JOB_CREATED = "job.created"
    JOB_SUBMITTED = "job.submitted"
    JOB_STARTED = "job.started"
    JOB_SUCCEEDED = "job.succeeded"
    JOB_FAILED = "job.failed"
    JOB_CANCELED = "job.canceled"
    JOB_OVERDUE = "job.overdue"
    JOB_REVIEW_REQUESTED = "job.review_requested"
    JOB_REVIEW_RESOLVED = "job.review_resolved"
    JOB_OUTCOME_CONFLICTED = "job.outcome_conflicted"
    JOB_LATE_OUTCOME_RECORDED = "job.late_outcome_recorded"
    ARTIFACT_STORED = "artifact.stored"
    ARTIFACT_REJECTED = "artifact.rejected"
    ARTIFACT_EXPIRED = "artifact.expired"
    WEBHOOK_RECEIVED = "webhook.received"
    ENDPOINT_DISABLED = "endpoint.disabled"
    ENDPOINT_TEST = "endpoint.test"
    HEARTBEAT_MISSED = "heartbeat.missed"
    HEARTBEAT_RECOVERED = "heartbeat.recovered"
    PROVIDER_WEBHOOKS_DEGRADED = "provider.webhooks_degraded"
    PROVIDER_WEBHOOKS_RECOVERED = "provider.webhooks_recovered"
    PROVIDER_OUTAGE_BEGAN = "provider.outage_began"
    PROVIDER_OUTAGE_ENDED = "provider.outage_ended"
    DEAD_LETTER_CREATED = "dead_letter.created"
    DEAD_LETTER_SURGED = "dead_letter.surged"
    DEAD_LETTER_SUBSIDED = "dead_letter.subsided"


class StreamedType(StrEnum):
    """What only a job's stream tells: facts of the moment, which nobody keeps as events."""

    PROGRESS = "job.progress"
    OUTPUT_DELTA = "job.output.delta"
    OUTPUT_RESET = "job.output.reset"


DESCRIPTIONS: dict[EventType | StreamedType, str] = {
    EventType.JOB_CREATED: "Accepted by Homing; nothing has been sent to the provider yet.",
    EventType.JOB_SUBMITTED: "Accepted by the provider, whose id for the run is now known.",
    EventType.JOB_STARTED: "The provider said for the first time that it works on the job.",
    EventType.JOB_SUCCEEDED: "The job ended well; `data.job.output` holds what the provider returned.",
    EventType.JOB_FAILED: "The job ended badly; `data.job.error` says why.",
    EventType.JOB_CANCELED: "The job ended because somebody asked for it.",
    EventType.JOB_OVERDUE: "The expected duration passed and the job is still open.",
    EventType.JOB_REVIEW_REQUESTED: "The job waits for a person; `data.job.review` says why.",
    EventType.JOB_REVIEW_RESOLVED: "The job no longer waits for a person.",
    EventType.JOB_OUTCOME_CONFLICTED: "The provider named a second, different end; the first one stays.",
    EventType.JOB_LATE_OUTCOME_RECORDED: "The provider named an end after Homing had given the job up.",
    EventType.ARTIFACT_STORED: "A result file is safe in our store; `data.artifact` describes it.",
    EventType.ARTIFACT_REJECTED: "A result file will not be stored; `data.artifact.reason` says why.",
    EventType.ARTIFACT_EXPIRED: "The provider no longer gives a result file away.",
    EventType.WEBHOOK_RECEIVED: "A sender that is no job provider (adapter `events`) sent something authentic.",
    EventType.ENDPOINT_DISABLED: "An endpoint is sent nothing more; `data.endpoint.reason` says why.",
    EventType.ENDPOINT_TEST: "Somebody asked for a test of an endpoint; sent to that endpoint only.",
    EventType.HEARTBEAT_MISSED: "A part of the fleet did not report within its time.",
    EventType.HEARTBEAT_RECOVERED: "A part of the fleet that had gone quiet reports again.",
    EventType.PROVIDER_WEBHOOKS_DEGRADED: "Half of a provider's last jobs came home by poll: its webhooks get lost.",
    EventType.PROVIDER_WEBHOOKS_RECOVERED: "A provider's webhooks arrive again.",
    EventType.PROVIDER_OUTAGE_BEGAN: "A provider gives no usable answer: it is left alone but for probes.",
    EventType.PROVIDER_OUTAGE_ENDED: "A provider that was away answers again; what piled up is sent at a pace.",
    EventType.DEAD_LETTER_CREATED: "Something exhausted its tries and waits for a person.",
    EventType.DEAD_LETTER_SURGED: "Dead letters come faster than they should; `data.dead_letters` counts them.",
    EventType.DEAD_LETTER_SUBSIDED: "Dead letters come as rarely again as they should.",
    StreamedType.PROGRESS: "The newest progress, where the provider tells any. Streams only.",
    StreamedType.OUTPUT_DELTA: "A piece of the job's output, while it is made; `data.text` follows on. Streams only.",
    StreamedType.OUTPUT_RESET: "The output begins anew: forget the text so far. Streams only.",
}

STATE_EVENTS: dict[JobState, EventType] = {
    JobState.RUNNING: EventType.JOB_STARTED,
    JobState.SUCCEEDED: EventType.JOB_SUCCEEDED,
    JobState.FAILED: EventType.JOB_FAILED,
    JobState.CANCELED: EventType.JOB_CANCELED,
}


@dataclass(frozen=True, slots=True)
class Event:
    """The envelope, as a handler or a consumer receives it.

    Attributes:
        id: ``evt_…``, the same on every delivery: what a consumer deduplicates by.
        type: One of :class:`EventType`, as text.
        schema_version: Version of the shape of ``data`` for this type.
        sequence: Counts per job from 1; None for events of no job.
        position: Place in the commit-ordered list of all events, gapless from 1.
        occurred_at: RFC 3339 UTC text.
        tenant: Whose event it is; None for events of the fleet.
        data: For job events ``{"job": <the job, as the API shows it, without its input>}``.
    """

    id: str
    type: str
    schema_version: int
    sequence: int | None
    position: int | None
    occurred_at: str
    tenant: str | None
    data: dict[str, object]


def is_wanted(event_type: str, patterns: tuple[str, ...]) -> bool:
    """Whether a subscription to ``patterns`` (``job.succeeded``, ``job.*``) wants this type."""
    return any(fnmatchcase(event_type, pattern) for pattern in patterns)
