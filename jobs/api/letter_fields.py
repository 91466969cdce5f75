"""What the routes of dead letters take: filters, and a rate."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, WithJsonSchema

from jobs.api.fields import Body, Instant, ShortText
from jobs.core.durations import parse_rate
from jobs.services.letters.bulk_redrives import DEFAULT_RATE_PER_S, MAX_RATE_PER_S, MIN_RATE_PER_S, NewRedrive
from jobs.services.letters.dead_letters import LetterFilter


def _rate(value: object) -> float:
    """A bare number is one per second."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return parse_rate(value)


def _bounded(rate: float) -> float:
    if not MIN_RATE_PER_S <= rate <= MAX_RATE_PER_S:
        raise ValueError(f"must be between 1/d and {MAX_RATE_PER_S:g}/s")
    return rate


RedriveRate = Annotated[
    float,
    BeforeValidator(_rate),
    AfterValidator(_bounded),
    WithJsonSchema({"type": "string", "examples": ["10/s", "60/m"], "description": "Letters at most; 10/s by default"}),
]


class LetterFields(BaseModel):
    """Filters: each that is given must hold."""

    kind: Annotated[ShortText, Field(description="submit, poll, cancel, handler, event, inbox …")] | None = None
    job: ShortText | None = None
    provider: Annotated[ShortText, Field(description="The provider entry it, or its job, belongs to")] | None = None
    endpoint: Annotated[ShortText, Field(description="Of failed deliveries")] | None = None
    reason: Annotated[ShortText, Field(description="Part of the reason, in upper or lower case")] | None = None
    since: Annotated[Instant, Field(description="Last failed then or later")] | None = None
    until: Annotated[Instant, Field(description="Last failed before")] | None = None

    def to_filter(self, *, is_open: bool | None = None) -> LetterFilter:
        """The same, as the services take it."""
        return LetterFilter(
            kind=self.kind,
            job_id=self.job,
            provider=self.provider,
            endpoint_id=self.endpoint,
            reason=self.reason,
            since=self.since,
            until=self.until,
            is_open=is_open,
        )


class RedriveBody(Body, LetterFields):
    """Which open dead letters to redrive, and how many a second. Without a filter: all."""

    # A default of the field would be shown as the number it is inside.
    rate: Annotated[RedriveRate, Field(default_factory=lambda: DEFAULT_RATE_PER_S)]

    def to_redrive(self) -> NewRedrive:
        """The same, as the service takes it."""
        return NewRedrive(self.to_filter(), self.rate)
