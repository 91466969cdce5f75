"""Which adapter an entry of the configuration speaks through."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from jobs.clock import Clock
from jobs.config.presets import preset_names
from jobs.config.providers import ProviderConfig
from jobs.core.errors import ConfigError
from jobs.core.suggestions import did_you_mean
from jobs.net.event_streams import EventStreams
from jobs.net.http import HttpClient
from jobs.providers.assemblyai import AssemblyAIProvider
from jobs.providers.declarative import DeclarativeProvider
from jobs.providers.elevenlabs import ElevenLabsProvider
from jobs.providers.events import EventSender
from jobs.providers.fal import FalProvider
from jobs.providers.heygen import HeyGenProvider
from jobs.providers.mux import MuxProvider
from jobs.providers.openai import OpenAIProvider
from jobs.providers.port import Provider
from jobs.providers.replicate import ReplicateProvider
from jobs.providers.runway import RunwayProvider
from jobs.providers.simulator import SimulatorProvider

Factory: TypeAlias = Callable[[ProviderConfig, HttpClient, Clock], Provider]
ListeningFactory: TypeAlias = Callable[[ProviderConfig, HttpClient, Clock, EventStreams], Provider]

#: Adapters that can listen to a run while it makes its output.
LISTENERS: Mapping[str, ListeningFactory] = {
    "openai": OpenAIProvider,
    "replicate": ReplicateProvider,
    "simulator": SimulatorProvider,
    **dict.fromkeys(("declarative", *preset_names()), DeclarativeProvider),
}

FACTORIES: Mapping[str, Factory] = {
    "assemblyai": AssemblyAIProvider,
    "elevenlabs": ElevenLabsProvider,
    "events": EventSender,
    "heygen": HeyGenProvider,
    "mux": MuxProvider,
    "fal": FalProvider,
    "runway": RunwayProvider,
}


def listens(config: ProviderConfig) -> bool:
    """Whether runs of this account may ever be listened to."""
    is_mute = config.mapping is not None and config.mapping.stream is None
    return config.adapter in LISTENERS and not is_mute


def build_adapter(
    config: ProviderConfig, client: HttpClient, clock: Clock, *, streams: EventStreams | None = None
) -> Provider:
    """The adapter of one account; dials nobody.

    Args:
        config: Its entry.
        client: Calls it.
        clock: Says when.
        streams: Listens to it; None: one that allows no private address a provider may name.

    Raises:
        ConfigError: There is no adapter of that name.
    """
    listening = LISTENERS.get(config.adapter)
    if listening is not None:
        return listening(config, client, clock, streams or EventStreams())
    factory = FACTORIES.get(config.adapter)
    if factory is None:
        meant = did_you_mean(config.adapter, {**LISTENERS, **FACTORIES})
        raise ConfigError(f"adapter {config.adapter!r} is unknown" + (f"; did you mean {meant}?" if meant else ""))
    return factory(config, client, clock)
