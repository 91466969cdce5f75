"""Accounts at providers: seen over the API, checked on the spot."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.cli.provider_check import SELF_TEST
from tests.fakes.api import FakeApi
from tests.unit.homing.cli.conftest import Run

SECRET = "whsec_c2ltdWxhdG9yLWRlbW8tc2VjcmV0LTAwMQ=="
ACCOUNT = {
    "name": "sim",
    "adapter": "simulator",
    "backlog": 3,
    "home_by": {"webhook": 7, "poll": 2},
    "paused_at": None,
}


@pytest.fixture
def configured(tmp_path: Path, api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> FakeApi:
    """A configuration whose provider and receiver are both the fake API."""
    monkeypatch.setenv("HOMING_PUBLIC_URL", api.url)
    text = f'[providers.sim]\nadapter = "simulator"\nbase_url = "{api.url}"\nwebhook_secrets = ["{SECRET}"]\n'
    (tmp_path / "homing.toml").write_text(text, encoding="utf-8")
    return api


def test_list_counts_what_came_home_how(run: Run, api: FakeApi) -> None:
    api.on("GET /v1/providers", {"data": [ACCOUNT], "next_cursor": None})

    shown = run("providers", "list").out

    for part in ("sim", "simulator", "3", "7", "2"):
        assert part in shown


def test_pause_and_resume_say_where_it_stands(run: Run, api: FakeApi) -> None:
    api.on("POST /v1/providers/sim/pause", {**ACCOUNT, "paused_at": "2026-01-01T00:00:00Z"})
    api.on("POST /v1/providers/sim/resume", ACCOUNT)

    assert run("providers", "pause", "sim").out.strip() == "sim: paused"
    assert run("providers", "resume", "sim").out.strip() == "sim: not paused"


def test_check_signs_an_event_and_sends_it_in(run: Run, configured: FakeApi) -> None:
    configured.on("GET /", {})
    configured.on("POST /webhooks/sim", {"status": "ignored"})

    ended = run("providers", "check", "--json")

    assert ended.code == 0
    assert [check["check"] for check in ended.document["checks"]] == [
        "configuration",
        "secrets",
        "reachable",
        "self-test",
    ]
    sent = configured.asked[-1]
    assert sent.body == SELF_TEST
    assert {name.lower() for name in sent.headers} >= {"webhook-id", "webhook-timestamp", "webhook-signature"}


def test_the_self_test_is_of_no_interest_to_the_adapter() -> None:
    from homing.composition import build_entries
    from jobs.clock import FakeClock
    from jobs.config.loading import Configuration
    from jobs.config.providers import ProviderConfig
    from jobs.config.settings import Settings

    config = ProviderConfig(adapter="simulator", base_url="http://h", webhook_scheme="standard-webhooks")
    entries = build_entries(Configuration(Settings.read({}), {"sim": config}), clock=FakeClock())

    assert entries["sim"].adapter.read_webhook(SELF_TEST, {}).report is None


@pytest.mark.parametrize(
    ("status", "words"), [(403, "another secret"), (404, "does not know"), (503, "doctor"), (502, "in front")]
)
def test_check_says_what_a_refused_self_test_means(run: Run, configured: FakeApi, status: int, words: str) -> None:
    configured.on("GET /", {})
    configured.on("POST /webhooks/sim", {}, status)

    ended = run("providers", "check")

    assert ended.code == 1
    assert words in ended.out


def test_check_finds_a_provider_that_cannot_be_reached_and_one_without_secrets(run: Run, tmp_path: Path) -> None:
    text = '[providers.sim]\nadapter = "simulator"\nbase_url = "http://127.0.0.1:1"\n'
    (tmp_path / "homing.toml").write_text(text, encoding="utf-8")

    ended = run("providers", "check", "--json")

    assert ended.code == 1
    failed = {check["check"] for check in ended.document["checks"] if not check["ok"]}
    assert failed == {"secrets", "reachable"}


def test_check_of_an_unknown_name_suggests_the_right_one(run: Run, configured: FakeApi) -> None:
    ended = run("providers", "check", "sims")

    assert ended.code == 2
    assert "did you mean sim?" in ended.err
