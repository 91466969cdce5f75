"""The page that greets a person: each command on it can be pasted as it is."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from homing.up.options import FleetOptions
from homing.up.run import _settings, welcome
from homing.up.run_file import Running

ALONE = Running("http://127.0.0.1:8080", "hk_test", None, None, None, None)
SIMULATED = Running("http://127.0.0.1:8080", "hk_test", None, None, None, "http://127.0.0.1:9000")


def commands(running: Running, options: FleetOptions) -> list[list[str]]:
    page = welcome(running, _settings(options))
    return [shlex.split(line) for line in page.partition("another terminal:\n")[2].splitlines() if line[:2] == "  "]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("homing.up.run.shutil.which", lambda _name: "/bin/homing")


def test_the_default_folder_needs_no_word() -> None:
    options = FleetOptions(environ={})

    assert [command[:2] for command in commands(SIMULATED, options)] == [
        ["homing", "submit"],
        ["homing", "doctor"],
        ["curl", "-H"],
    ]


def test_a_fleet_elsewhere_is_named_in_each_command(tmp_path: Path) -> None:
    folder, config = tmp_path / "my data", tmp_path / "my.toml"
    options = FleetOptions(data_dir=folder, config=config, environ={})

    submit, doctor, _curl = commands(SIMULATED, options)

    told = [f"HOMING_DATA_DIR={folder}", f"HOMING_CONFIG={config}", "homing"]
    assert submit[:3] == told
    assert doctor == [*told, "doctor"]


def test_without_a_simulator_no_command_has_a_blank_to_fill_or_asks_for_work() -> None:
    check, doctor, _curl = commands(ALONE, FleetOptions(environ={}))

    assert check == ["homing", "providers", "check"]
    assert doctor == ["homing", "doctor"]
