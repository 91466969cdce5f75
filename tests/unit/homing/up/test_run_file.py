"""`run.json` is private, whole at every moment, and names the living."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from homing.up import run_file
from homing.up.run_file import Running

_RUNNING = Running(
    url="http://127.0.0.1:8080",
    api_key="hk_x",
    flower_url="http://127.0.0.1:5555",
    flower_user="homing",
    flower_password="secret",
    simulator_url=None,
    pids={"web": [1, 2]},
)


def test_it_reads_back_what_was_written(tmp_path: Path) -> None:
    run_file.write(_RUNNING, tmp_path)

    assert run_file.read(tmp_path) == _RUNNING


def test_it_has_the_fields_others_rely_on(tmp_path: Path) -> None:
    run_file.write(_RUNNING, tmp_path)

    assert set(json.loads((tmp_path / "run.json").read_text())) == {
        "url",
        "api_key",
        "flower_url",
        "flower_user",
        "flower_password",
        "simulator_url",
        "pids",
    }


def test_only_its_owner_may_read_it_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        run_file.write(_RUNNING, tmp_path)
        run_file.write(_RUNNING, tmp_path)
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "run.json").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"url": 1}', "null"])
def test_a_file_that_is_no_description_is_no_fleet(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)

    assert run_file.read(tmp_path) is None


def test_no_file_is_no_fleet(tmp_path: Path) -> None:
    assert run_file.read(tmp_path) is None
    run_file.remove(tmp_path)


def test_secrets_stay_out_of_its_repr() -> None:
    assert "hk_x" not in repr(_RUNNING)
    assert "secret" not in repr(_RUNNING)


def test_the_living_are_named_main_first_and_the_dead_left_out(tmp_path: Path) -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'], stdin=0)"
    parent = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    (tmp_path / "alive.pid").write_text(str(parent.pid))
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    (tmp_path / "gone.pid").write_text(str(gone.pid))
    (tmp_path / "torn.pid").write_text("")

    from tests.services.waiting import wait_until

    files = {name: tmp_path / f"{name}.pid" for name in ("alive", "gone", "torn", "absent")}
    wait_until(lambda: len(run_file.living_pids(files)["alive"]) == 2, within_s=10, what="the child")
    living = run_file.living_pids(files)

    assert list(living) == ["alive"]
    assert living["alive"][0] == parent.pid
    parent.communicate(b"\n")
