"""The pages about descriptions say what the reader of descriptions reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from homing.simulator import SimulatorConfig, running
from jobs.clock import SystemClock
from jobs.config.entries import read_providers
from jobs.config.loading import load
from jobs.config.mapping import SECTIONS
from jobs.config.mapping.events import SIGNATURE_KEYS
from jobs.config.mapping.table import Table
from jobs.config.presets import preset_names
from jobs.config.providers import ADAPTERS
from jobs.config.secret_sources import SecretSources
from jobs.core.errors import ConfigError
from jobs.core.states import TERMINAL, JobState
from jobs.net.http import HttpClient
from jobs.providers.port import SubmitRequest
from jobs.providers.registry import build_adapter
from tests.services.waiting import wait_until

DOCS = Path(__file__).parents[2] / "docs"
REFERENCE = (DOCS / "reference/declarative.md").read_text()
HOWTO = (DOCS / "howto/add_a_provider.md").read_text()
SECRETS = {"ACME_TOKEN": "anything", "ACME_WEBHOOK_SECRET": "whsec_c2ltdWxhdG9yLWRlbW8tc2VjcmV0LTAwMQ=="}
CALL_KEYS = {"call", "query", "headers", "body", "encoding"}
CALLS = ("submit", "search", "status", "cancel", "stream")


def section(title: str) -> str:
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", REFERENCE, flags=re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


def listed(title: str) -> set[str]:
    cells = re.findall(r"^\| (.*?) \|", section(title), flags=re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Mapping[str, set[str]]:
    """What each section is asked for, by its name."""
    found: dict[str, set[str]] = {}
    take = Table.take

    def noting(self: Table, key: str) -> Any:
        found.setdefault(self.where.removeprefix("providers.p."), set()).add(key)
        return take(self, key)

    monkeypatch.setattr(Table, "take", noting)
    empty: dict[str, object] = {name: {} for name in SECTIONS}
    empty |= {"adapter": "declarative", "submit": {"idempotency": {}, "call": "POST /"}}
    empty["status"] = {"state": "a", "states": {}, "call": "GET /"}
    empty["webhook"] = {"states": {}}
    secrets = SecretSources({}, Path(), plain_allowed=True)
    read_providers({"p": empty}, adapters=ADAPTERS, secrets=secrets, faults=[])
    return found


@pytest.mark.parametrize("name", CALLS)
def test_the_page_lists_every_key_of_a_request_and_no_other(asked: Mapping[str, set[str]], name: str) -> None:
    extra = {"equals", "contains"} if name == "search" else set()

    assert listed(name) - {"request.callback_url"} | extra == asked[name] - CALL_KEYS


def test_the_page_lists_every_key_of_what_comes_back_and_no_other(asked: Mapping[str, set[str]]) -> None:
    assert listed("webhook") | set(SIGNATURE_KEYS) == asked["webhook"]
    assert listed("artifacts") == asked["artifacts"]
    assert listed("Calls") >= CALL_KEYS
    idempotency = asked["submit.idempotency"]
    assert {name for name in idempotency if name not in section("submit")} == set()
    assert set(SECTIONS) <= listed("Entry") | {*CALLS, "webhook", "artifacts"}


def test_every_preset_is_named() -> None:
    assert [name for name in preset_names() if f"`{name}`" not in REFERENCE and f'"{name}"' not in REFERENCE] == []


@pytest.fixture
def sample() -> str:
    """The how-to's file."""
    found: list[str] = re.findall(r"^```toml\n(.*?)^```", HOWTO, flags=re.MULTILINE | re.DOTALL)
    assert len(found) == 1
    return found[0]


def test_the_how_to_brings_a_run_home(sample: str, tmp_path: Path) -> None:
    file = tmp_path / "acme.toml"
    client = HttpClient()
    with running(SimulatorConfig(time_scale=0.1)) as simulator:
        file.write_text(sample.replace("http://127.0.0.1:9000", simulator.url))
        entry = load({"HOMING_CONFIG": str(file), **SECRETS}).providers["acme"]
        acme = build_adapter(entry, client, SystemClock())
        request = SubmitRequest({"model": "video", "prompt": "a heron"}, "key-1", "tok-1", "http://127.0.0.1:9/w")

        run = acme.submit(request).provider_job_id
        assert run is not None
        wait_until(lambda: acme.status(run).state in TERMINAL, within_s=10, what="the end")

        report = acme.status(run)
        assert (report.state, bool(report.output)) == (JobState.SUCCEEDED, True)
        assert [found.provider_job_id for found in acme.find(idempotency_key="key-1", token="tok-1")] == [run]
        assert acme.submit(request).provider_job_id == run
    client.close()


def test_the_mistakes_of_the_how_to_are_told_as_it_says(sample: str, tmp_path: Path) -> None:
    bad = sample.replace('\nid = "id"', '\nidd = "id"', 1).replace("${input.model}", "${inptu.model}")
    (tmp_path / "acme.toml").write_text(bad.replace('state = "status"', 'state = "status["'))

    with pytest.raises(ConfigError) as caught:
        load({"HOMING_CONFIG": str(tmp_path / "acme.toml"), **SECRETS})

    (shown,) = re.findall(r"^```\n(homing: .*?)^```", HOWTO, flags=re.MULTILINE | re.DOTALL)
    assert [f"homing: {fault}" for fault in caught.value.faults] == shown.splitlines()
