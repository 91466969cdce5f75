"""Exit codes and errors: 0 done, 1 failed, 2 unusable; never a traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.api import FakeApi, a_job
from tests.unit.homing.cli.conftest import Run

LATER = ("pipelines", "schedules")


def test_help_lists_this_releases_commands_and_no_others(run: Run) -> None:
    shown = run("--help")

    assert shown.code == 0
    for command in ("up", "demo", "simulator", "migrate", "keys", "doctor", "plan", "submit", "get", "list"):
        assert command in shown.out
    assert not [command for command in LATER if command in shown.out]


@pytest.mark.parametrize(
    "command", ["watch", "cancel", "resolve", "dead-letters", "providers", "endpoints", "deliveries"]
)
def test_help_lists_the_commands_about_jobs_in_flight(run: Run, command: str) -> None:
    assert command in run("--help").out


@pytest.mark.parametrize(
    "arguments",
    [
        ("frobnicate",),
        ("list", "--no-such-option"),
        ("get",),
        ("list", "--limit", "0"),
        ("keys", "create", "--role", "emperor"),
        ("demo", "--faults", "mild"),
        ("plan", "--duration", "soon"),
        ("submit", "sim", "--input", "{"),
        ("submit", "sim", "--input", "[1]"),
        ("submit", "sim", "--input", "@nowhere.json"),
        ("submit", "sim", "--metadata", "novalue"),
        ("watch", "job_1", "--timeout", "soon"),
        ("dead-letters", "redrive"),
        ("dead-letters", "discard", "dl_1", "--all"),
    ],
)
def test_a_command_that_cannot_be_understood_exits_2(run: Run, arguments: tuple[str, ...]) -> None:
    assert run(*arguments).code == 2


def test_without_a_fleet_a_command_says_how_to_get_one(run: Run) -> None:
    ended = run("list")

    assert ended.code == 2
    assert "homing up --embedded" in ended.err
    assert "HOMING_URL" in ended.err


def test_a_url_without_a_key_is_half_an_address(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOMING_URL", "http://127.0.0.1:1")

    ended = run("list")

    assert ended.code == 2
    assert "HOMING_API_KEY" in ended.err


def test_a_fleet_that_does_not_answer_is_a_failure_and_no_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOMING_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("HOMING_API_KEY", "hk_x")

    ended = run("list")

    assert ended.code == 1
    assert "does not answer" in ended.err
    assert "hk_x" not in ended.err


def test_a_refusal_shows_the_servers_words_and_each_field(run: Run, api: FakeApi) -> None:
    problem = {
        "type": "urn:homing:problem:unprocessable",
        "title": "The request is not valid",
        "detail": "not valid: expected",
        "errors": [{"field": "expected", "message": "is not a duration"}],
    }
    api.on("POST /v1/jobs", problem, 422)

    ended = run("submit", "sim", "--expected", "soon")

    assert ended.code == 2
    assert "not valid: expected" in ended.err
    assert "expected: is not a duration" in ended.err


def test_what_the_server_says_of_its_one_field_is_shown_once(run: Run, api: FakeApi) -> None:
    words = "there is no provider 'sin'; did you mean 'sim'?"
    problem = {"title": "Not found", "detail": words, "errors": [{"field": "provider", "message": words}]}
    api.on("POST /v1/jobs", problem, 404)

    assert run("submit", "sin").err.count(words) == 1


def test_with_json_an_error_is_json_too(run: Run, api: FakeApi) -> None:
    ended = run("get", "job_nowhere", "--json")

    assert ended.code == 1
    assert ended.out == ""
    assert json.loads(ended.err)["type"] == "not-found"


def test_a_key_that_is_not_taken_says_where_keys_come_from(run: Run, api: FakeApi) -> None:
    api.on("GET /v1/jobs", {"title": "An API key is needed", "detail": "this API key is not known"}, 401)

    ended = run("list")

    assert ended.code == 2
    assert "homing keys create" in ended.err


def test_a_filter_that_nothing_can_match_is_a_mistake_of_the_command(run: Run, api: FakeApi) -> None:
    api.on("GET /v1/jobs", {"title": "The request is not valid", "detail": "state: must be one of pending …"}, 422)

    ended = run("list", "--state", "foo")

    assert ended.code == 2
    assert "must be one of" in ended.err


def test_an_answer_that_is_no_api_is_a_failure(run: Run, api: FakeApi) -> None:
    api.on("GET /v1/jobs", "<html>a proxy</html>")

    assert run("list").code == 1


def test_a_fault_of_ours_is_one_line(run: Run, api: FakeApi) -> None:
    api.on("GET /v1/jobs", {"unexpected": True})

    ended = run("list")

    assert ended.code == 1
    assert "fault of Homing" in ended.err
    assert len(ended.err.strip().splitlines()) == 1


def test_a_bad_configuration_shows_every_fault_and_exits_2(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "homing.toml").write_text('[providers.a]\nadapter = "nope"\n[other]\n', encoding="utf-8")
    monkeypatch.setenv("HOMING_DATABSE_URL", "x")

    ended = run("migrate")

    assert ended.code == 2
    assert "HOMING_DATABASE_URL" in ended.err
    assert "adapter 'nope'" in ended.err
    assert "other is unknown" in ended.err


def test_help_does_not_wait_for_what_only_commands_need() -> None:
    heavy = "{'sqlalchemy', 'celery', 'flask', 'requests', 'pydantic', 'redis', 'rich.table'}"
    code = f"import sys, homing.cli.app; print(sorted({heavy} & set(sys.modules)))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_the_version_is_shown(run: Run) -> None:
    ended = run("--version")

    assert (ended.code, ended.out.count(".")) == (0, 2)


def test_results_go_to_standard_output_alone(run: Run, api: FakeApi) -> None:
    api.on("GET /v1/jobs/job_1", a_job())

    ended = run("get", "job_1", "--json")

    assert ended.document["id"] == "job_1"
    assert ended.err == ""
