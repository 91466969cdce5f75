"""Where the parts meet: which database, which broker, which adapters, which handlers.

Nothing else in the product chooses an implementation. A process calls :func:`build_runtime` once, after any fork.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module

from homing.broker import CeleryBroker
from homing.redis_urls import connect
from jobs.broker import Broker
from jobs.clock import Clock, SystemClock, system_rng
from jobs.config.loading import Configuration, load
from jobs.config.providers import ProviderConfig
from jobs.config.settings import Settings
from jobs.core.errors import ConfigError
from jobs.core.policy import Finish
from jobs.handlers import HandlerRegistry, registry
from jobs.net.event_streams import EventStreams
from jobs.net.guard import Guard
from jobs.net.http import HttpClient
from jobs.providers.port import Provider
from jobs.providers.registry import build_adapter
from jobs.services.observe import Observer
from jobs.services.output.streams import can_follow_locked
from jobs.services.runtime import ProviderEntry, Runtime, install
from jobs.storage.database import ANSWER_TIMEOUT_S, WRITE_TIMEOUT_S, Database
from webhooks.incoming.applying.parked import wake_parked
from webhooks.incoming.inbox import entries
from webhooks.outgoing import letters
from webhooks.outgoing.fan_out import fan_out
from webhooks.outgoing.sealing import development_key

#: For bells and flags, which are worth no longer wait.
_REDIS_TIMEOUT_S = 0.5


def build_runtime(
    configuration: Configuration | None = None,
    *,
    write_timeout_s: float = WRITE_TIMEOUT_S,
    answer_timeout_s: float = ANSWER_TIMEOUT_S,
) -> Runtime:
    """Puts a process together and makes the result its own (``jobs.services.runtime.current``).

    Connects to nothing yet: the first transaction and the first message do.

    Args:
        configuration: What an operator chose; read from the environment where absent.
        write_timeout_s: How long a SQLite writer of this process queues.
        answer_timeout_s: How long this process waits for PostgreSQL's answer to a statement.

    Raises:
        ConfigError: Every fault of the configuration, or a plugin that cannot be imported.
    """
    chosen = configuration or load(os.environ)
    clock = SystemClock()
    runtime = assemble(
        chosen,
        clock=clock,
        database=Database.connect(
            chosen.settings.database_url,
            clock=clock,
            write_timeout_s=write_timeout_s,
            answer_timeout_s=answer_timeout_s,
        ),
        broker=CeleryBroker(chosen.settings.redis_url),
        handlers=load_handlers(chosen),
    )
    install(runtime)
    return runtime


def assemble(
    configuration: Configuration, *, clock: Clock, database: Database, broker: Broker, handlers: HandlerRegistry
) -> Runtime:
    """Joins parts that were chosen already; what tests use to choose their own."""
    rng = system_rng()
    guard = Guard(
        lifted=configuration.settings.allow_private_addresses, https_only=configuration.settings.is_production
    )
    providers = build_entries(configuration, clock=clock, guard=guard)
    runtime = Runtime(
        settings=configuration.settings,
        database=database,
        clock=clock,
        rng=rng,
        broker=broker,
        providers=providers,
        observer=Observer({name: entry.policy for name, entry in providers.items()}, rng),
        handlers=handlers,
        redis=connect(configuration.settings.redis_url, timeout_s=_REDIS_TIMEOUT_S),
        guard=guard,
    )
    runtime.observer.can_follow = partial(can_follow_locked, providers)
    _introduce_strangers(runtime)
    return runtime


def build_entries(
    configuration: Configuration, *, clock: Clock, guard: Guard | None = None
) -> Mapping[str, ProviderEntry]:
    """The configured provider entries, each with its adapter."""
    client, streams = HttpClient(), EventStreams(guard)
    adapters = {
        name: build_adapter(config, client, clock, streams=streams) for name, config in configuration.providers.items()
    }
    return {name: _entry(name, config, adapters[name]) for name, config in configuration.providers.items()}


def _entry(name: str, config: ProviderConfig, adapter: Provider) -> ProviderEntry:
    """An entry is as it is written; where it is silent about the finish, its adapter decides."""
    policy = config.policy
    if policy.finish is None and adapter.capabilities.lists_artifacts:
        policy = replace(policy, finish=Finish.ON_ARTIFACTS)
    return ProviderEntry(name, config, policy, adapter)


def load_handlers(configuration: Configuration) -> HandlerRegistry:
    """Imports the plugins, whose ``@on`` fills the registry.

    Beside what is installed they are found in the folder of the configuration file, whatever folder each process of
    the fleet was started in.

    Raises:
        ConfigError: Each module that cannot be imported, and why.
    """
    folder = str(configuration.settings.config.expanduser().absolute().parent)
    if configuration.plugins and folder not in sys.path:
        sys.path.append(folder)
    faults = [fault for fault in map(_import_fault, configuration.plugins) if fault]
    if faults:
        raise ConfigError(faults)
    return registry


@contextmanager
def exiting_on_bad_configuration() -> Iterator[None]:
    """A bad configuration prints all its faults and ends the process with status 2.

    ``SystemExit`` passes through Celery's signals, which would log a ``ConfigError`` and go on: a worker without its
    parts takes messages and fails each.
    """
    try:
        yield
    except ConfigError as error:
        print(*error.faults, sep="\n", file=sys.stderr)  # noqa: T201 - the person who started us reads it
        raise SystemExit(2) from None


def _import_fault(module: str) -> str | None:
    try:
        import_module(module)
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything; the operator is told which and what
        return f"plugins.modules: {module} cannot be imported: {type(error).__name__}: {error}"
    return None


def _token_keys(settings: Settings) -> tuple[str, ...]:
    """The same in every process of a fleet: tokens made by one are read by another."""
    keys = tuple(key.get_secret_value() for key in settings.secret_key)
    return keys or (development_key(settings.data_dir),)


def _introduce_strangers(runtime: Runtime) -> None:
    """``jobs`` knows neither ``webhooks`` nor ``reconciler``; here they leave their cards."""
    runtime.token_keys = lambda: _token_keys(runtime.settings)
    runtime.wake_parked = lambda provider, run: wake_parked(runtime, provider, run)
    runtime.redrivers = {entries.LETTER_KIND: entries.redrive_event, letters.LETTER_KIND: letters.redrive_delivery}
    runtime.fan_outs = (fan_out,)
