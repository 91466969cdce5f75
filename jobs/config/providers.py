"""One provider entry of the TOML file: `[providers.<name>]`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetPydanticSchema,
    SecretStr,
    field_validator,
    model_validator,
)

from jobs.config.mapping import ProviderMapping
from jobs.config.presets import preset_names
from jobs.config.signing import SCHEME_SETTINGS, options_from, signing_faults
from jobs.config.urls import check_web_url
from jobs.core.durations import parse_duration, parse_rate, parse_size
from jobs.core.policy import DEFAULT_DEADLINE, Finish, OnDeadline, Policy
from jobs.core.signatures import SCHEMES, SchemeOptions, Secret
from jobs.core.spending import DEFAULT_CURRENCY, Budget, Per


def _positive(value: timedelta) -> timedelta:
    if value <= timedelta(0):
        raise ValueError("must be longer than 0")
    return value


Duration: TypeAlias = Annotated[timedelta, BeforeValidator(parse_duration), AfterValidator(_positive)]
HeaderName: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,100}$")]
#: Read and checked before (`jobs.config.mapping`); taken as it is.
Described: TypeAlias = Annotated[ProviderMapping, GetPydanticSchema(lambda _source, handler: handler(object))]
Network: TypeAlias = Annotated[IPv4Network | IPv6Network, BeforeValidator(ip_network)]
Rate: TypeAlias = Annotated[float, BeforeValidator(parse_rate)]


#: Requests to one account in flight at most, where its entry does not say. A ``worker-io`` has eight places: a provider
#: whose every answer takes its whole time-out must leave some to the others.
DEFAULT_CONCURRENCY = 6


@dataclass(frozen=True, slots=True)
class AdapterDefaults:
    """What an adapter says about itself where an entry is silent.

    Attributes:
        base_url: the provider's own address; none: the entry must name one.
        webhook_scheme: how it signs.
        webhook_settings: what it does its own way when it signs so, as an entry would write it (`webhook_header` …).
        needs_base_url: whether there is anything to call.
        is_described: whether it speaks as the entry, or a preset of the adapter's name, describes.
    """

    base_url: str | None = None
    webhook_scheme: str = "standard-webhooks"
    webhook_settings: Mapping[str, object] = field(default_factory=dict)
    needs_base_url: bool = True
    is_described: bool = False


#: No prefix, and an id in a header that is not signed (third-party: one recent v3 integration).
HEYGEN_SIGNING = {
    "webhook_header": "Heygen-Signature",
    "webhook_prefix": "",
    "webhook_delivery_id_header": "Heygen-Event-Id",
}
#: The adapters of this release by the name an entry gives them.
ADAPTERS = {
    "simulator": AdapterDefaults(),
    "assemblyai": AdapterDefaults("https://api.assemblyai.com", "shared-secret"),
    "elevenlabs": AdapterDefaults("https://api.elevenlabs.io", "elevenlabs"),
    "events": AdapterDefaults(needs_base_url=False),
    "heygen": AdapterDefaults("https://api.heygen.com", "hmac-body", HEYGEN_SIGNING),
    "mux": AdapterDefaults("https://api.mux.com", "stripe", {"webhook_header": "Mux-Signature"}),
    "fal": AdapterDefaults("https://queue.fal.run", "fal"),
    "openai": AdapterDefaults("https://api.openai.com/v1"),
    "replicate": AdapterDefaults("https://api.replicate.com"),
    "runway": AdapterDefaults("https://api.dev.runwayml.com", "none"),
    **{name: AdapterDefaults(is_described=True) for name in ("declarative", *preset_names())},
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


class BudgetConfig(BaseModel):
    """What may be spent at a provider in a UTC day or month; nothing new is submitted beyond it."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    amount: Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]
    currency: Annotated[str, Field(pattern=r"^[A-Za-z]{3,16}$")]
    per: Per


class ArtifactRules(BaseModel):
    """Which result files may be stored: types by pattern (none: what the provider says they are), and their size."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    types: tuple[Annotated[str, Field(pattern=r"^[a-z0-9.+*-]+/[a-z0-9.+*-]+$")], ...] = ()
    max_bytes: Annotated[int, BeforeValidator(parse_size), Field(gt=0)] = 500 * 10**6


class ProviderConfig(BaseModel):
    """One account at a provider. Secrets are resolved and checked before it is built (`jobs.config.loading`).

    Attributes:
        adapter: which of the known adapters speaks to it.
        base_url: without a slash at its end.
        tenant: the only tenant it serves; none: all.
        api_token: our credential there.
        webhook_secrets: newest first; each is accepted.
        webhook_header: the signature's header, where the sender renames it.
        webhook_timestamp_header: the timestamp's header, likewise.
        webhook_prefix: what stands before the digest.
        webhook_encoding: how the digest is written.
        webhook_algorithm: the digest of an account that may choose.
        webhook_tolerance: how far a signed timestamp may be from our clock, either way.
        webhook_timestamp_unit: what the sender counts in.
        webhook_delivery_id_header: the header with the delivery's id, where the scheme has no place for one.
        webhook_delivery_id_field: the field of a JSON body with the delivery's id, dots leading inwards (events).
        jwks_url: where the sender's public keys are, instead of the scheme's own address.
        kind: what a job of this account is, where its provider has several kinds (openai).
        expected: usual duration of a job; none: what the provider's own history says.
        budget: what may be spent there; its currency is the one the provider's costs are in.
        idempotency: what the provider does with an idempotency key it has seen (simulator).
        idempotency_window: how long it remembers a key, from the first send (simulator).
        search: whether runs can be found by our key or token (simulator).
        stream_resume: whether a run's output can be listened to from where it was left (simulator).
        finish: what makes a job succeed; none: its files, where the adapter lists them, else the provider's word.
        private_addresses: networks its result files may come from besides public addresses.
        artifacts: what may be stored.
        mapping: its description (declarative, and presets); no key of the file, but what the sections come to.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, arbitrary_types_allowed=True)

    adapter: str
    base_url: Annotated[str, AfterValidator(check_web_url)]
    # As a key may name it (jobs.services.keys); any other would serve nobody.
    tenant: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")] | None = None
    api_token: SecretStr | None = None
    webhook_scheme: str
    webhook_secrets: tuple[Secret, ...] = Field((), repr=False)
    webhook_header: HeaderName | None = None
    webhook_timestamp_header: HeaderName | None = None
    webhook_prefix: Annotated[str, Field(pattern=r"^[ -~]{0,50}$")] | None = None
    webhook_encoding: Literal["hex", "base64"] | None = None
    webhook_algorithm: Literal["sha1", "sha256"] | None = None
    webhook_tolerance: Duration | None = None
    webhook_timestamp_unit: Literal["s", "ms"] | None = None
    webhook_delivery_id_header: HeaderName | None = None
    webhook_delivery_id_field: Annotated[str, Field(pattern=r"^[^.]+(\.[^.]+){0,9}$", max_length=200)] | None = None
    jwks_url: Annotated[str, AfterValidator(check_web_url)] | None = None
    kind: Literal["batch", "response", "fine-tune"] | None = None
    expected: Duration | None = None
    review_after: Duration | None = None
    deadline: Duration = DEFAULT_DEADLINE
    on_deadline: OnDeadline = OnDeadline.REVIEW
    poll: PollConfig = PollConfig()
    rate_limit: Rate | None = None
    concurrency: Annotated[int, Field(ge=1, strict=True)] = DEFAULT_CONCURRENCY
    budget: BudgetConfig | None = None
    idempotency: Literal["replay", "reject", "none"] = "replay"
    idempotency_window: Duration = timedelta(hours=24)
    search: Annotated[bool, Field(strict=True)] = True
    stream_resume: Annotated[bool, Field(strict=True)] = True
    finish: Finish | None = None
    private_addresses: tuple[Network, ...] = ()
    artifacts: ArtifactRules = ArtifactRules()
    mapping: Described | None = Field(default=None, repr=False)

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

    @model_validator(mode="after")
    def _check_signing(self) -> Self:
        given = (name for name in self.model_fields_set if getattr(self, name) is not None)
        if faults := list(signing_faults(self.webhook_scheme, sorted(given))):
            raise ValueError("; ".join(faults))
        if self.adapter == "events" and self.webhook_scheme == "none":
            raise ValueError("adapter 'events' needs a webhook_scheme that proves its sender; 'none' proves nothing")
        if self.webhook_delivery_id_field is not None and self.adapter != "events":
            raise ValueError("webhook_delivery_id_field is for adapter 'events'; others know where their id is")
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
            budget=None if self.budget is None else Budget(self.budget.amount, self.budget.per),
            finish=self.finish,
            currency=DEFAULT_CURRENCY if self.budget is None else self.budget.currency,
        )

    @cached_property
    def scheme_options(self) -> SchemeOptions:
        """What its sender does its own way when it signs."""
        return options_from({name: getattr(self, name) for name in SCHEME_SETTINGS})

    @cached_property
    def key_set_url(self) -> str | None:
        """Where its sender's public keys are fetched; none where its secrets are configured."""
        scheme = SCHEMES.get(self.webhook_scheme)
        if scheme is None or scheme.key_set_url is None or self.webhook_secrets:
            return None
        return self.jwks_url or scheme.key_set_url
