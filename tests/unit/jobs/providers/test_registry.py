"""Which adapter an entry speaks through, and whether it can listen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobs.clock import FakeClock
from jobs.config.entries import read_providers
from jobs.config.providers import ADAPTERS, ProviderConfig
from jobs.config.secret_sources import SecretSources
from jobs.core.errors import ConfigError
from jobs.net.http import HttpClient
from jobs.providers.port import StreamsOutput
from jobs.providers.registry import FACTORIES, LISTENERS, build_adapter, listens

DESCRIBED: dict[str, Any] = {
    "base_url": "https://api.acme.example",
    "submit": {"call": "POST /runs", "id": "id"},
    "status": {"call": "GET /runs/${job.provider_job_id}", "state": "s", "states": {"succeeded": ["done"]}},
}


def an_entry(adapter: str, **keys: object) -> ProviderConfig:
    faults: list[str] = []
    table = {"adapter": adapter, "webhook_scheme": "none", **keys}
    sources = SecretSources({}, Path(), plain_allowed=True)
    entries = read_providers({"p": table}, adapters=ADAPTERS, secrets=sources, faults=faults)
    assert not faults, faults
    return entries["p"]


def test_every_adapter_that_may_be_named_can_be_built_one_way() -> None:
    assert set(FACTORIES) | set(LISTENERS) == set(ADAPTERS)
    assert not set(FACTORIES) & set(LISTENERS)


def test_who_listens_follows_the_port_for_it() -> None:
    listening = build_adapter(an_entry("replicate"), HttpClient(), FakeClock())
    mute = build_adapter(an_entry("runway"), HttpClient(), FakeClock())

    assert isinstance(listening, StreamsOutput)
    assert not isinstance(mute, StreamsOutput)


def test_a_description_listens_where_it_has_a_stream() -> None:
    stream = {"call": "GET /runs/${job.provider_job_id}/text", "end": "done"}

    assert listens(an_entry("declarative", **DESCRIBED, stream=stream))
    assert not listens(an_entry("declarative", **DESCRIBED))
    assert listens(an_entry("openai"))
    assert not listens(an_entry("heygen"))


def test_an_adapter_nobody_knows_is_a_mistake() -> None:
    config = an_entry("replicate").model_copy(update={"adapter": "replicat"})

    with pytest.raises(ConfigError, match="did you mean replicate"):
        build_adapter(config, HttpClient(), FakeClock())
