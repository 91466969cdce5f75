"""The shape of each event, as models: what the schemas at ``/v1/event-types`` and in ``docs/`` are made of."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field, create_model

from jobs.api.documents import Document, Job, Review
from jobs.core.events import DESCRIPTIONS, SCHEMA_VERSION, EventType, StreamedType

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def _without(model: type[Document], name: str, *, called: str, words: str, **instead: Any) -> type[Document]:
    """A model with a field less, and others in the place of theirs."""
    fields = {key: (field.annotation, field) for key, field in model.model_fields.items() if key != name}
    told: type[Document] = create_model(called, __base__=Document, __doc__=words, **{**fields, **instead})
    return told


#: What was sent is looked up where one job is asked for; an event goes to more readers.
ToldReview = _without(Review, "sent", called="ToldReview", words="Why a job waits for a person.")
#: A job as events tell it: without its input, which never changes and may be large or private.
ToldJob = _without(
    Job,
    "input",
    called="ToldJob",
    words="The job at that moment, without its input.",
    review=(ToldReview | None, Job.model_fields["review"]),
)


class JobData(Document):
    """Of events of a job."""

    job: ToldJob  # type: ignore[valid-type] # made above


class NamedJob(Document):
    """A job, by its id alone."""

    id: str


class OutputResetData(Document):
    """Of ``job.output.reset``."""

    job: NamedJob
    attempt: int = Field(ge=1, description="Whose output begins")


class OutputDeltaData(OutputResetData):
    """Of ``job.output.delta``."""

    offset: int = Field(ge=0, description="Where the text begins in the whole output, in Unicode code points")
    text: str = Field(min_length=1)


class ToldArtifact(Document):
    """A result file."""

    id: str
    job: str
    state: Literal["stored", "rejected", "expired"]
    content_type: str | None
    size: int | None
    sha256: str | None
    reason: str | None = Field(description="Why it is not stored")
    expires_at: AwareDatetime | None


class ArtifactData(Document):
    """Of events of a result file."""

    artifact: ToldArtifact


class WebhookData(Document):
    """What a sender of ``adapter = "events"`` sent."""

    provider: str
    delivery_id: str | None
    inbox: str
    received_at: AwareDatetime
    is_hint: bool
    headers: dict[str, str]
    body: dict[str, Any] | list[Any] | None
    body_base64: str | None
    is_body_omitted: bool


class Silence(Document):
    """A part of the fleet, and how long it did not report."""

    name: str
    period_s: float
    last_beat_at: AwareDatetime
    silent_s: float


class HeartbeatData(Document):
    """Of events of the fleet's parts."""

    heartbeat: Silence


class ProviderData(Document):
    """Of events of a provider's webhooks."""

    provider: str
    poll_share: float = Field(ge=0, le=1, description="Of its newest jobs, the share that a poll brought home")
    jobs: int = Field(ge=0, description="How many those are")


class OutageBeganData(Document):
    """Of ``provider.outage_began``."""

    provider: str
    since: AwareDatetime = Field(description="The first of the calls in a row that came to nothing")
    reason: str = Field(description="What the last of them came to")


class OutageEndedData(Document):
    """Of ``provider.outage_ended``."""

    provider: str
    since: AwareDatetime
    lasted_s: float = Field(ge=0, description="For how long nothing but probes was sent")
    probes: int = Field(ge=0)


class ToldLetter(Document):
    """A dead letter."""

    id: str
    kind: str
    ref: str
    job_id: str | None
    reason: str
    attempts: int


class DeadLetterData(Document):
    """Of events of dead letters."""

    dead_letter: ToldLetter


class NewLetters(Document):
    """How many dead letters came lately."""

    count: int = Field(ge=0)
    window_s: float = Field(gt=0, description="Within so many seconds")
    kinds: dict[str, int] = Field(description="The same by kind")


class NewLettersData(Document):
    """Of ``dead_letter.surged`` and ``dead_letter.subsided``."""

    dead_letters: NewLetters


class DisabledEndpoint(Document):
    """An endpoint that is sent nothing more."""

    id: str
    url: str
    events: list[str]
    description: str | None
    disabled_at: AwareDatetime
    reason: str


class DisabledEndpointData(Document):
    """Of ``endpoint.disabled``."""

    endpoint: DisabledEndpoint


class TestedEndpoint(Document):
    """An endpoint, as its test names it."""

    id: str
    url: str


class TestedEndpointData(Document):
    """Of ``endpoint.test``."""

    endpoint: TestedEndpoint


class Envelope(Document):
    """What every event is wrapped in."""

    id: str = Field(pattern="^evt_", description="The same on every delivery: deduplicate by it")
    schema_version: Literal[1]
    occurred_at: AwareDatetime
    tenant: str | None = Field(description="Whose it is; null for events of the fleet")
    position: Annotated[int | None, Field(description="In lists: its place among all events, in commit order")] = None


class SequencedEnvelope(Envelope):
    """Of events that belong to a job."""

    sequence: int = Field(ge=1, description="Counts per job")


class LooseEnvelope(Envelope):
    """Of events that belong to no job."""

    sequence: None


_DATA: dict[str, type[Document]] = {
    "job": JobData,
    StreamedType.OUTPUT_DELTA: OutputDeltaData,
    StreamedType.OUTPUT_RESET: OutputResetData,
    "artifact": ArtifactData,
    "webhook": WebhookData,
    "heartbeat": HeartbeatData,
    "provider": ProviderData,
    "provider.outage_began": OutageBeganData,
    "provider.outage_ended": OutageEndedData,
    "dead_letter": DeadLetterData,
    "dead_letter.surged": NewLettersData,
    "dead_letter.subsided": NewLettersData,
    "endpoint.disabled": DisabledEndpointData,
    "endpoint.test": TestedEndpointData,
}


@cache
def strict_schema(event_type: EventType | StreamedType) -> dict[str, Any]:
    """The JSON Schema of what this release writes, to the last field; ours to test against."""
    family = event_type.partition(".")[0]
    sequenced = family in ("job", "artifact") and not isinstance(event_type, StreamedType)
    model = create_model(
        "Event",
        __base__=SequencedEnvelope if sequenced else LooseEnvelope,
        type=(Literal[str(event_type)], ...),  # type: ignore[arg-type] # a type made of a value
        data=(_DATA.get(event_type) or _DATA[family], ...),
    )
    schema = model.model_json_schema(mode="serialization")
    schema["required"] = [name for name in schema["required"] if name != "position"]  # deliveries have none
    about = {"title": str(event_type), "description": DESCRIPTIONS[event_type]}
    return {"$schema": _DIALECT, "$id": f"urn:homing:event:{event_type}:{SCHEMA_VERSION}", **schema, **about}


def schema_of(event_type: EventType | StreamedType) -> dict[str, Any]:
    """The JSON Schema for consumers: fields may be added within a version, so what it does not know is allowed."""
    opened = _opened(strict_schema(event_type))
    assert isinstance(opened, dict)
    return {**opened, "title": str(event_type)}


def list_event_types() -> Iterator[dict[str, Any]]:
    """Every type with its schema, in the order of the reference."""
    for event_type in (*EventType, *StreamedType):
        yield {
            "type": str(event_type),
            "description": DESCRIPTIONS[event_type],
            "schema_version": SCHEMA_VERSION,
            "schema": schema_of(event_type),
        }


def _opened(schema: object) -> object:
    if isinstance(schema, list):
        return [_opened(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = ("additionalProperties", False)
    return {
        name: _opened(item)
        for name, item in schema.items()
        if (name, item) != closed and not (name == "title" and isinstance(item, str))  # made of the field's name
    }
