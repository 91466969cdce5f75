"""One provider entry of the TOML file: `[providers.<name>]`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    field_validator,
    model_validator,
)

from jobs.config.urls import check_web_url
from jobs.core.durations import parse_duration, parse_rate
from jobs.core.policy import DEFAULT_DEADLINE, OnDeadline, Policy
from jobs.core.signatures import SchemeOptions, Secret


def _positive(value: timedelta) -> timedelta:
    if value <= timedelta(0):
        raise ValueError("must be longer than 0")
    return value


Duration: TypeAlias = Annotated[timedelta, BeforeValidator(parse_duration), AfterValidator(_positive)]
Rate: TypeAlias = Annotated[float, BeforeValidator(parse_rate)]


@dataclass(frozen=True, slots=True)
class AdapterDefaults:
    """What an adapter says about itself where an entry is silent.

    Attributes:
        base_url: the provider's own address; none: the entry must name one.
        webhook_scheme: how it signs.
    """

    base_url: str | None = None
    webhook_scheme: str = "standard-webhooks"


#: The adapters of this release by the name an entry gives them.
ADAPTERS = {
    "simulator": AdapterDefaults(),
    "assemblyai": AdapterDefaults("https://api.assemblyai.com", "shared-secret"),
    "elevenlabs": AdapterDefaults("https://api.elevenlabs.io", "elevenlabs"),
    "heygen": AdapterDefaults("https://api.heygen.com", "hmac-body"),
    "mux": AdapterDefaults("https://api.mux.com", "stripe"),
    "runway": AdapterDefaults("https://api.dev.runwayml.com", "none"),
}


class PollConfig(BaseModel):
    """How polls space out: number n waits `min(base * 2**n, cap)`; past the expected duration, overdue_cap."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    base: Duration = timedelta(seconds=1)
    cap: Duration = timedelta(seconds=60)
    overdue_cap: Duration = timedelta(minutes=10)

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.cap < self.base:
            raise ValueError("cap is shorter than base")
        return self


class ProviderConfig(BaseModel):
    """One account at a provider. Secrets are resolved and checked before it is built (`jobs.config.loading`).

    Attributes:
        adapter: which of the known adapters speaks to it.
        base_url: without a slash at its end.
        tenant: the only tenant it serves; none: all.
        api_token: our credential there.
        webhook_secrets: newest first; each is accepted.
        webhook_header: the signature's header, where the sender renames it.
        expected: usual duration of a job.
        idempotency: what the provider does with an idempotency key it has seen (simulator).
        idempotency_window: how long it remembers a key, from the first send (simulator).
        search: whether runs can be found by our key or token (simulator).
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, arbitrary_types_allowed=True)

    adapter: str
    base_url: Annotated[str, AfterValidator(check_web_url)]
    tenant: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    api_token: SecretStr | None = None
    webhook_scheme: str
    webhook_secrets: tuple[Secret, ...] = Field((), repr=False)
    webhook_header: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,100}$")] | None = None
    expected: Duration | None = None
    review_after: Duration | None = None
    deadline: Duration = DEFAULT_DEADLINE
    on_deadline: OnDeadline = OnDeadline.REVIEW
    poll: PollConfig = PollConfig()
    rate_limit: Rate | None = None
    concurrency: Annotated[int, Field(ge=1, strict=True)] | None = None
    idempotency: Literal["replay", "reject", "none"] = "replay"
    idempotency_window: Duration = timedelta(hours=24)
    search: Annotated[bool, Field(strict=True)] = True

    @field_validator("webhook_secrets", mode="plain")
    @classmethod
    def _take_secrets(cls, value: object) -> tuple[Secret, ...]:
        """Take parsed secrets only: a text here would be one nobody has checked."""
        if isinstance(value, tuple) and all(isinstance(secret, Secret) for secret in value):
            return value
        raise ValueError("must be a list of secrets")

    @model_validator(mode="after")
    def _check_times(self) -> Self:
        if self.expected and self.expected > self.deadline:
            raise ValueError("expected is longer than deadline")
        if self.expected and self.review_after and self.review_after < self.expected:
            raise ValueError("review_after is shorter than expected")
        return self

    @cached_property
    def policy(self) -> Policy:
        """The rules of time and load."""
        return Policy(
            expected=self.expected,
            review_after=self.review_after,
            deadline=self.deadline,
            on_deadline=self.on_deadline,
            poll_base=self.poll.base,
            poll_cap=self.poll.cap,
            overdue_cap=self.poll.overdue_cap,
            rate_per_s=self.rate_limit,
            concurrency=self.concurrency,
        )

    @cached_property
    def scheme_options(self) -> SchemeOptions:
        """What its sender does its own way when it signs."""
        return SchemeOptions(header=self.webhook_header)
