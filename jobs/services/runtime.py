"""The parts a process is made of, put together by ``homing.composition`` and handed to edges and tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from redis import Redis

from jobs.broker import Broker
from jobs.clock import Clock
from jobs.config.providers import ProviderConfig
from jobs.config.settings import Settings
from jobs.core.backoff import Rng
from jobs.core.errors import NotFound
from jobs.core.policy import Policy
from jobs.handlers import HandlerRegistry
from jobs.ids import new_token
from jobs.net.guard import Guard
from jobs.providers.port import Provider
from jobs.services.observe import Observer
from jobs.storage.database import Database, Transaction

#: Given the relay's transaction and the rows of some events; returns messages: a task's name and its arguments.
FanOut: TypeAlias = Callable[[Transaction, Sequence[Mapping[str, Any]]], Iterable[tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class ProviderEntry:
    """One account at a provider: its name, its configuration, its adapter."""

    name: str
    config: ProviderConfig
    policy: Policy
    adapter: Provider

    @property
    def calls_back(self) -> bool:
        """Whether its jobs may come home by webhook at all."""
        return self.adapter.capabilities.callback_per_request or bool(self.config.webhook_secrets)


def _own_key() -> Callable[[], Sequence[str]]:
    key = new_token()
    return lambda: (key,)


@dataclass(slots=True)
class Runtime:
    """Everything a process needs; one per process, built after any fork.

    ``wake_parked(provider, provider_job_id)`` is called after a commit that made a run's id known, so that events
    which came before it are applied at once (``webhooks`` supplies it; ``jobs`` does not know ``webhooks``).
    ``redrivers`` adds what a redrive does for kinds of dead letters that ``jobs`` does not know, by kind
    (``jobs.services.letters.redrivers``).
    ``fan_outs`` take part in the relay's transaction: each gets the events' rows, without their data, and returns the
    messages to send after the commit.
    ``guard`` judges every URL that somebody else gave, before it is called.
    ``token_keys`` are the secrets that short-lived tokens are signed with, newest first; one of this process alone
    where nobody supplies others.
    ``redis`` has short time-outs and no retries; whoever uses it can do without an answer.
    """

    settings: Settings
    database: Database
    clock: Clock
    rng: Rng
    broker: Broker
    providers: Mapping[str, ProviderEntry]
    observer: Observer
    handlers: HandlerRegistry
    redis: Redis | None = None
    guard: Guard = field(default_factory=Guard)
    token_keys: Callable[[], Sequence[str]] = field(default_factory=_own_key)
    wake_parked: Callable[[str, str], None] = field(default=lambda _provider, _run: None)
    redrivers: Mapping[str, Callable[[Transaction, Mapping[str, Any]], str | None]] = field(default_factory=dict)
    fan_outs: Sequence[FanOut] = ()

    def provider(self, name: str) -> ProviderEntry:
        """The entry of that name.

        Raises:
            NotFound: ``homing.toml`` names no such provider.
        """
        try:
            return self.providers[name]
        except KeyError:
            known = ", ".join(sorted(self.providers)) or "none"
            raise NotFound(f"there is no provider {name!r}; configured: {known}") from None


_installed: list[Runtime] = []


def install(runtime: Runtime | None) -> None:
    """Makes a runtime the process's own; Celery tasks find it by :func:`current`."""
    _installed[:] = [] if runtime is None else [runtime]


def current() -> Runtime:
    """The process's runtime.

    Raises:
        RuntimeError: ``install`` was not called in this process.
    """
    if not _installed:
        raise RuntimeError("no runtime in this process: homing.composition.build_runtime() comes first")
    return _installed[0]
