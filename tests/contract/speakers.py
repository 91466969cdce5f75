"""Adapters of real providers and the dialects they speak: the table that `test_adapters.py` runs down.

A further adapter with a dialect adds a row.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

from homing.simulator.config import DEMO_SECRET, SimulatorConfig
from homing.simulator.plan import FaultPlan
from homing.simulator.server import Running, running
from jobs.clock import SystemClock
from jobs.config.entries import read_providers
from jobs.config.providers import ADAPTERS, ProviderConfig
from jobs.config.secret_sources import SecretSources
from jobs.core.observations import Json
from jobs.core.states import JobState
from jobs.net.http import Bounds, HttpClient
from jobs.providers.port import Provider, Report, SubmitRequest
from jobs.providers.registry import build_adapter
from tests.contract.dialects.receiver import Receiver, read_until

TOKEN = "sim-token"


@dataclass(frozen=True)
class Speaker:
    """One adapter, in one of its ways to be used.

    Attributes:
        adapter: As an entry names it.
        path: Where its dialect stands in the simulator.
        input: A job's, from how long it works and whether it fails, given a world to prepare it in.
        refused: An input that it cannot take.
        cancels_as: How a canceled run ends.
        finds: Whether a lost submit is found by asking.
        is_hint: Whether its webhooks only say "look".
        has_files: Whether a success brings links to result files.
        entry: More of its entry.
        scheme: How its webhooks are signed.
        events: The states its webhooks tell of a run that succeeds.
    """

    name: str
    adapter: str
    path: str
    input: Callable[[World, str, bool], dict[str, Json]]
    refused: Mapping[str, Json]
    cancels_as: JobState = JobState.CANCELED
    finds: bool = False
    is_hint: bool = False
    has_files: bool = True
    entry: Mapping[str, object] = field(default_factory=dict)
    scheme: str = "standard-webhooks"
    events: tuple[JobState, ...] = (JobState.SUCCEEDED,)


@dataclass(frozen=True)
class World:
    """An adapter, the simulator it speaks to, and whoever receives its webhooks."""

    speaker: Speaker
    simulator: Running
    adapter: Provider
    config: ProviderConfig
    hook: Receiver

    def request(self, *, lasts: str = "0.3", fails: bool = False, token: str = "attempt-1") -> SubmitRequest:
        inputs = self.speaker.input(self, lasts, fails)
        return SubmitRequest(inputs, f"key-{token}", token, f"{self.hook.url}/webhooks/p/{token}")

    def begin(self, **wanted: Any) -> Begun:
        request = self.request(**wanted)
        run = self.adapter.submit(request).provider_job_id
        assert run is not None
        return Begun(self, run, self.adapter.capabilities.address(run, request.input))

    @property
    def ledger(self) -> dict[str, Any]:
        return self.simulator.provider.ledger.snapshot()


@dataclass(frozen=True)
class Begun:
    """A run that was submitted."""

    world: World
    id: str
    address: str

    def read(self) -> Report:
        return self.world.adapter.status(self.address)

    def read_until(self, *states: JobState) -> Report:
        return read_until(self.read, lambda report: report.state in states)


@contextmanager
def world_of(speaker: Speaker, hook: Receiver, plan: FaultPlan | None = None) -> Iterator[World]:
    """The adapter built from an entry, as the product builds it."""
    config = SimulatorConfig(time_scale=0.2, api_token=TOKEN, webhook_url=f"{hook.url}/webhooks/p")
    client = HttpClient(Bounds(connect_s=2, read_s=2, total_s=4))
    with running(config, plan=plan) as simulator:
        entry = an_entry(speaker, simulator.url)
        yield World(speaker, simulator, build_adapter(entry, client, SystemClock()), entry, hook)
    client.close()


def an_entry(speaker: Speaker, url: str) -> ProviderConfig:
    """The entry of an account at a simulator, with what its webhooks are verified by."""
    faults: list[str] = []
    secret = published_key(url) if speaker.scheme == "fal" else DEMO_SECRET
    table = {
        "adapter": speaker.adapter,
        "base_url": f"{url}/{speaker.path}",
        "api_token": TOKEN,
        "webhook_secrets": [secret],
        **speaker.entry,
    }
    sources = SecretSources(os.environ, Path(), plain_allowed=True)
    entries = read_providers({"p": table}, adapters=ADAPTERS, secrets=sources, faults=faults)
    assert not faults, faults
    return entries["p"]


def published_key(url: str) -> str:
    """fal's key, as its dialect publishes it."""
    (key,) = requests.get(f"{url}/fal/.well-known/jwks.json", timeout=5).json()["keys"]
    return str(key["x"])


# Inputs --------------------------------------------------------------------------------------------------


def _failing(fails: bool) -> dict[str, Json]:
    return {"fail": "out of paint"} if fails else {}


def _prediction(_world: World, lasts: str, fails: bool) -> dict[str, Json]:
    inputs: Json = {"prompt": "a pigeon", "duration_s": float(lasts), **_failing(fails)}
    return {"model": "homing/video", "input": inputs}


def _training(_world: World, lasts: str, fails: bool) -> dict[str, Json]:
    inputs: Json = {"duration_s": float(lasts), **_failing(fails)}
    return {"kind": "training", "model": "me/linear", "version": "v1", "destination": "me/mine", "input": inputs}


def _queued(_world: World, lasts: str, fails: bool) -> dict[str, Json]:
    return {"model": "fal-ai/video/fast", "prompt": "a pigeon", "duration_s": float(lasts), **_failing(fails)}


def _dream(_world: World, lasts: str, fails: bool) -> dict[str, Json]:
    return {"model": "ray-2", "prompt": "a pigeon", "duration_s": float(lasts), **_failing(fails)}


def _clip(_world: World, lasts: str, fails: bool) -> dict[str, Json]:
    return {"model": "higgsfield-ai/video/fast", "prompt": "a pigeon", "duration_s": float(lasts), **_failing(fails)}


def _metadata(lasts: str, fails: bool) -> dict[str, Json]:
    return {"duration_s": lasts, **_failing(fails)}


def _batch(world: World, lasts: str, fails: bool) -> dict[str, Json]:
    row = {"custom_id": "row-1", "method": "POST", "url": "/v1/responses", "body": {"input": "a pigeon"}}
    file = _upload(world, json.dumps(row).encode(), purpose="batch")
    return {"input_file_id": file, "endpoint": "/v1/responses", "metadata": _metadata(lasts, fails)}


def _response(_world: World, lasts: str, fails: bool) -> dict[str, Json]:
    return {"model": "gpt-5", "input": "a pigeon", "metadata": _metadata(lasts, fails)}


def _tuning(world: World, lasts: str, fails: bool) -> dict[str, Json]:
    file = _upload(world, b'{"messages":[]}\n{"messages":[1]}\n', purpose="fine-tune")
    return {"model": "gpt-4.1-mini", "training_file": file, "metadata": _metadata(lasts, fails)}


def _upload(world: World, content: bytes, *, purpose: str) -> str:
    answer = requests.post(
        f"{world.config.base_url}/files",
        headers={"Authorization": f"Bearer {TOKEN}"},
        files={"file": ("f.jsonl", content)},
        data={"purpose": purpose},
        timeout=5,
    )
    return str(answer.json()["id"])


_BOTH = (JobState.RUNNING, JobState.SUCCEEDED)
_NO_FILE: dict[str, Json] = {"input_file_id": "file-none", "endpoint": "/v1/responses"}

SPEAKERS = (
    Speaker("replicate prediction", "replicate", "replicate", _prediction, {"version": "1", "input": 1}, events=_BOTH),
    Speaker("replicate training", "replicate", "replicate", _training, {"kind": "training"}, events=_BOTH),
    Speaker("fal", "fal", "fal", _queued, {"model": "../fal"}, scheme="fal"),
    Speaker("openai batch", "openai", "openai/v1", _batch, _NO_FILE, finds=True, is_hint=True),
    Speaker(
        "openai response", "openai", "openai/v1", _response, {"model": "gpt-5"},
        is_hint=True, has_files=False, entry={"kind": "response"},
    ),
    Speaker("openai fine-tune", "openai", "openai/v1", _tuning, {"training_file": "x"}, finds=True, is_hint=True),
)  # fmt: skip
