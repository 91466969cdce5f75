"""What the routes of endpoints and deliveries take and answer, for the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field, WithJsonSchema, model_validator

from jobs.api.documents import Document
from jobs.api.fields import Body, Instant, PageQuery, ShortText
from jobs.core.durations import parse_rate
from webhooks.outgoing.endpoint_rows import DEFAULT_CONCURRENCY, DEFAULT_RATE_PER_S
from webhooks.outgoing.endpoints import NewEndpoint
from webhooks.outgoing.schema import DeliveryState, EndpointState


def _bounded_rate(rate: float) -> float:
    if rate > 1000:
        raise ValueError("must be at most 1000/s")
    return rate


Url = Annotated[str, Field(min_length=1, max_length=2000, examples=["https://example.com/hooks"])]
Pattern = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[a-z_.*]+$")]
Patterns = Annotated[list[Pattern], Field(min_length=1, max_length=50, description="Types, or patterns like `job.*`")]
Rate = Annotated[
    float,
    BeforeValidator(parse_rate),
    AfterValidator(_bounded_rate),
    WithJsonSchema({"type": "string", "examples": ["10/s", "600/m"], "description": "Tries at most"}),
]
Concurrency = Annotated[int, Field(ge=1, le=50, description="Tries at once at most")]
Secret = Annotated[str, Field(max_length=200, description="`whsec_…`; left out: one is made")]
Description = Annotated[str, Field(max_length=500)]


class NewEndpointBody(Body):
    """Where to send events, and which."""

    url: Url
    events: Patterns
    secret: Secret | None = None
    rate: Annotated[Rate, Field(validate_default=True)] = f"{DEFAULT_RATE_PER_S:g}/s"  # type: ignore[assignment] # read as sent
    concurrency: Concurrency = DEFAULT_CONCURRENCY
    description: Description | None = None

    def to_new_endpoint(self) -> NewEndpoint:
        """The same, as the service takes it."""
        return NewEndpoint(self.url, tuple(self.events), self.secret, self.rate, self.concurrency, self.description)


class ChangeEndpointBody(Body):
    """What is to be different; what is left out stays."""

    url: Url | None = None
    events: Patterns | None = None
    rate: Rate | None = None
    concurrency: Concurrency | None = None
    description: Description | None = None

    @model_validator(mode="after")
    def _no_nulls(self) -> Self:
        nulls = [name for name in self.model_fields_set - {"description"} if getattr(self, name) is None]
        if nulls:
            raise ValueError(f"{', '.join(sorted(nulls))}: may be left out, and may not be null")
        return self

    def to_columns(self) -> dict[str, Any]:
        """The same, as the service takes it."""
        named = {name: getattr(self, name) for name in self.model_fields_set}
        return {"rate_per_s" if name == "rate" else name: value for name, value in named.items()}


class RotateBody(Body):
    """A secret of your own, or none: then one is made."""

    secret: Secret | None = None


class RecoverBody(Body):
    """The span whose missed events are sent again."""

    since: Instant
    until: Annotated[Instant, Field(description="Default: now")] | None = None


class DeliveriesQuery(PageQuery):
    """Which deliveries."""

    endpoint: ShortText | None = None
    job: ShortText | None = None
    state: DeliveryState | None = None


class Endpoint(Document):
    """Where events are sent."""

    id: str
    url: str
    events: list[str]
    state: EndpointState
    description: str | None
    rate: str
    concurrency: int
    disabled_at: AwareDatetime | None
    disabled_reason: str | None
    failing_since: AwareDatetime | None = Field(description="The first failure since the last success")
    recovering: bool = Field(description="Whether missed events are being made due again")
    created_at: AwareDatetime
    updated_at: AwareDatetime


class EndpointWithSecret(Endpoint):
    """An endpoint and its new secret, which no other answer shows."""

    secret: str


class EndpointPage(Document):
    """Endpoints, newest first."""

    data: list[Endpoint]
    next_cursor: str | None


class DeliveryInList(Document):
    """An event on its way to an endpoint. `url` is set for a job's `callback_url`."""

    id: str
    endpoint: str
    event: str = Field(description="Its id, which is the `webhook-id` of every try")
    type: str
    job: str | None
    url: str | None
    state: DeliveryState
    attempt_count: int
    next_try_at: AwareDatetime | None
    occurred_at: AwareDatetime
    created_at: AwareDatetime
    finished_at: AwareDatetime | None


class Attempt(Document):
    """One try. `error` is a short name: `status_500`, `tls_error`, `address_refused:<rule>`, `interrupted` …"""

    at: AwareDatetime
    status: int | None
    ms: int | None
    error: str | None
    excerpt: str | None = Field(description="The beginning of the answer")


class Delivery(DeliveryInList):
    """The same, with every attempt, oldest first."""

    attempts: list[Attempt]


class DeliveryPage(Document):
    """Deliveries, newest first."""

    data: list[DeliveryInList]
    next_cursor: str | None


class SigningSecret(Document):
    """What the callbacks of your jobs are signed with."""

    secret: str
