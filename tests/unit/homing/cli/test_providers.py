"""Accounts at providers: seen over the API, checked on the spot."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.cli.provider_check import SELF_TEST
from homing.up import run_file
from tests.fakes.api import FakeApi
from tests.unit.homing.cli.conftest import Run

SECRET = "whsec_c2ltdWxhdG9yLWRlbW8tc2VjcmV0LTAwMQ=="
ACCOUNT = {
    "name": "sim",
    "adapter": "simulator",
    "backlog": 3,
    "home_by": {"webhook": 7, "poll": 2},
    "spend": {"currency": "USD", "today": 0.5, "month": 12.345, "budget": None, "exhausted": False},
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

    for part in ("sim", "simulator", "3", "7", "2", "12.35 USD"):
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


@pytest.fixture
def unreachable(tmp_path: Path) -> Path:
    """A configuration whose provider is not there."""
    text = f'[providers.sim]\nadapter = "simulator"\nbase_url = "http://127.0.0.1:1"\nwebhook_secrets = ["{SECRET}"]\n'
    path = tmp_path / "homing.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_check_says_in_a_few_words_that_nobody_answers(run: Run, unreachable: Path) -> None:
    details = {check["check"]: check["detail"] for check in run("providers", "check", "--json").document["checks"]}

    assert details["reachable"] == (
        "http://127.0.0.1:1: nothing listens there: is base_url right, and may this machine reach it?"
    )


def test_check_without_a_fleet_says_how_to_have_one_and_calls_nobody(run: Run, unreachable: Path) -> None:
    ended = run("providers", "check", "--json")

    details = {check["check"]: check["detail"] for check in ended.document["checks"]}
    assert ended.code == 1
    assert details["self-test"] == (
        "no fleet to send it to: start one with `homing up`, or set HOMING_PUBLIC_URL to where yours is called"
    )


def test_check_finds_the_fleet_as_other_commands_do(run: Run, unreachable: Path, api: FakeApi) -> None:
    api.on("POST /webhooks/sim", {"status": "ignored"})

    run("providers", "check")

    assert [asked.path for asked in api.asked] == ["/webhooks/sim"]


def test_check_of_an_unknown_name_suggests_the_right_one(run: Run, configured: FakeApi) -> None:
    ended = run("providers", "check", "sims")

    assert ended.code == 2
    assert "did you mean sim?" in ended.err


DESCRIBED = """
[providers.acme]
adapter = "declarative"
base_url = "{url}"
[providers.acme.submit]
call = "POST /jobs"
id = "id"
[providers.acme.status]
call = "GET /jobs/${{job.provider_job_id}}"
state = "status"
states = {{ succeeded = ["done"] }}
"""


def test_check_says_what_a_description_lets_homing_assume(run: Run, api: FakeApi, tmp_path: Path) -> None:
    (tmp_path / "homing.toml").write_text(DESCRIBED.format(url=api.url), encoding="utf-8")
    api.on("GET /", {})

    ended = run("providers", "check", "--json")

    details = {check["check"]: check["detail"] for check in ended.document["checks"]}
    assert ended.code == 0
    assert "a lost answer to a submit waits for a webhook or a person" in details["description"]
    assert "runs cannot be canceled" in details["description"]
    assert "jobs come home by poll" in details["secrets"]


def test_check_names_every_mistake_of_a_description_with_its_line(run: Run, tmp_path: Path) -> None:
    text = DESCRIBED.format(url="http://h").replace("done", "").replace("/jobs/", "jobs/").replace('id = "id"', "")
    (tmp_path / "homing.toml").write_text(text, encoding="utf-8")

    ended = run("providers", "check")

    assert ended.code == 2
    places = [line.split("homing.toml:")[1].split(" ")[:2] for line in ended.err.splitlines() if "homing.toml" in line]
    assert places == [
        ["5:", "providers.acme.submit.id"],
        ["9:", "providers.acme.status.call"],
        ["11:", "providers.acme.status.states.succeeded[0]"],
    ]


def test_recheck_says_what_came_in(run: Run, api: FakeApi) -> None:
    found = {"provider": "sim", "checked": 5, "taken": 3, "duplicate": 1, "refused": 2}
    api.on("POST /v1/providers/sim/recheck", found)

    assert "5 checked, 3 taken in (1 of them known already), 2 refused again" in run("providers", "recheck", "sim").out
    assert run("providers", "recheck", "sim", "--json").document == found


def entry_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "homing.toml").write_text(f'[providers.sender]\nadapter = "events"\n{text}', encoding="utf-8")


@pytest.mark.parametrize(
    "scheme", ["stripe", "elevenlabs", "hmac-body", "hmac-timestamp-body", "slack", "cloudinary", "shared-secret"]
)
def test_check_signs_as_each_scheme_does(
    run: Run, api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    monkeypatch.setenv("HOMING_PUBLIC_URL", api.url)
    entry_file(tmp_path, f'webhook_scheme = "{scheme}"\nwebhook_secrets = ["a-secret-of-its-own"]\n')
    api.on("POST /webhooks/sender", {"status": "ignored"})

    ended = run("providers", "check", "--json")

    assert [check["check"] for check in ended.document["checks"]] == ["configuration", "secrets", "self-test"]
    assert ended.code == 0


def test_check_signs_the_url_for_twilio(
    run: Run, api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOMING_PUBLIC_URL", api.url)
    entry_file(tmp_path, 'webhook_scheme = "twilio"\nwebhook_secrets = ["a-secret-of-its-own"]\n')
    api.on("POST /webhooks/sender", {"status": "ignored"})

    assert run("providers", "check").code == 0
    assert "bodySHA256" in api.asked[-1].query


def test_check_cannot_sign_with_a_public_key_and_does_not_try(run: Run, tmp_path: Path) -> None:
    entry_file(tmp_path, 'webhook_secrets = ["whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="]\n')

    ended = run("providers", "check", "--json")

    assert [check["check"] for check in ended.document["checks"]] == ["configuration", "secrets"]
    assert ended.code == 0


@pytest.mark.parametrize(
    ("answer", "words"),
    [({"keys": []}, "the key set has no Ed25519 key"), (None, "answered 404"), ("<html>", "not JSON")],
)
def test_check_looks_for_the_keys_a_sender_publishes(
    run: Run, api: FakeApi, tmp_path: Path, answer: object, words: str
) -> None:
    entry_file(tmp_path, f'webhook_scheme = "fal"\njwks_url = "{api.url}/jwks"\n')
    if answer is not None:
        api.on("GET /jwks", answer)
    ended = run("providers", "check", "--json")
    assert ended.code == 1
    assert words in next(check["detail"] for check in ended.document["checks"] if not check["ok"])

    key = {"kty": "OKP", "crv": "Ed25519", "x": "1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4"}
    api.answers["GET /jwks"] = [(200, {"keys": [key]})]
    assert run("providers", "check").code == 0


def test_check_knows_the_provider_that_a_running_fleet_has_made_up(
    run: Run, api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "simulator_webhook_secret").write_text(SECRET)
    text = f'[providers.simulator]\nadapter = "simulator"\nbase_url = "{api.url}"\n'
    (data / "simulator.toml").write_text(text + 'webhook_secrets = [{ file = "simulator_webhook_secret" }]\n')
    assert run("providers", "check", "--json").document["checks"] == []
    running = run_file.Running(api.url, "hk_test", None, None, None, None)
    run_file.write(running, data)
    api.on("GET /", {})
    api.on("POST /webhooks/simulator", {"status": "ignored"})

    ended = run("providers", "check", "--json")

    assert ended.code == 0
    assert {check["provider"] for check in ended.document["checks"]} >= {"simulator"}
