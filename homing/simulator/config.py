"""What a simulator may be told at its start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, TypeAlias

from homing.simulator.faults import PROFILES
from jobs.core.errors import ConfigError
from jobs.core.signatures import SCHEMES, parse_secrets

Idempotency: TypeAlias = Literal["replay", "reject", "none"]

IDEMPOTENCY_MODES: tuple[Idempotency, ...] = ("replay", "reject", "none")

#: Known to everybody, so good for one machine only.
DEMO_SECRET = "whsec_c2ltdWxhdG9yLWRlbW8tc2VjcmV0LTAwMQ=="  # noqa: S105 - a public demo value


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatorConfig:
    """One simulated provider.

    Attributes:
        host: address to listen on.
        port: 0 lets the machine choose.
        seed: of the faults.
        faults: profile `none`, `default` or `brutal`.
        plan: inputs (`model` inside) known beforehand, dealt the profile's full quotas.
        idempotency: what a repeated Idempotency-Key meets: `replay` the same job, `reject` 422, `none` a new run.
        idempotency_window: how long a key is remembered, from its first send.
        search: whether jobs can be looked up by reference or key.
        stream_resume: whether who listens to a run's output may go on where it left off; otherwise its pieces have no
            ids, and it always begins at the beginning.
        search_lag: how long a new run stays out of the search.
        api_token: bearer token its calls must carry; none: open.
        webhook_url: the account's URL, for jobs without a `callback_url`.
        webhook_scheme: one whose secret both sides share, or `none`.
        webhook_secret: in the scheme's form.
        public_url: what result URLs begin with; default: the address it listens on.
        artifact_ttl: how long a result URL is good.
        time_scale: stretches every wait of the simulator, run durations included; tests shrink it.
    """

    host: str = "127.0.0.1"
    port: int = 0
    seed: int = 0
    faults: str = "none"
    plan: tuple[Mapping[str, object], ...] = ()
    idempotency: Idempotency = "replay"
    idempotency_window: timedelta = timedelta(hours=24)
    search: bool = True
    search_lag: timedelta = timedelta(0)
    stream_resume: bool = True
    api_token: str | None = field(default=None, repr=False)
    webhook_url: str | None = None
    webhook_scheme: str = "standard-webhooks"
    webhook_secret: str = field(default=DEMO_SECRET, repr=False)
    public_url: str | None = None
    artifact_ttl: timedelta = timedelta(hours=1)
    time_scale: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what cannot work, everything at once.

        Raises:
            ConfigError: naming each fault.
        """
        faults = [*_name_faults(self), *_secret_faults(self)]
        if not 0 <= self.port <= 65535:
            faults.append("port must be from 0 to 65535")
        if self.time_scale <= 0:
            faults.append("time_scale must be greater than 0")
        if self.idempotency_window <= timedelta(0) or self.artifact_ttl <= timedelta(0):
            faults.append("idempotency_window and artifact_ttl must be longer than zero")
        if faults:
            raise ConfigError(faults)


def _name_faults(config: SimulatorConfig) -> list[str]:
    choices = (
        ("faults", config.faults, tuple(PROFILES)),
        ("idempotency", config.idempotency, IDEMPOTENCY_MODES),
        ("webhook_scheme", config.webhook_scheme, tuple(SCHEMES)),
    )
    return [
        f"{name} is {value!r}; it must be one of {', '.join(known)}"
        for name, value, known in choices
        if value not in known
    ]


def _secret_faults(config: SimulatorConfig) -> tuple[str, ...]:
    if config.webhook_scheme not in SCHEMES or not SCHEMES[config.webhook_scheme].takes_secrets:
        return ()
    try:
        parse_secrets(config.webhook_scheme, [config.webhook_secret], where="webhook_secret")
    except ConfigError as error:
        return error.faults
    return ()
