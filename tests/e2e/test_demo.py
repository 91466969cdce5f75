"""The demo as a user runs it: a real fleet, a provider that misbehaves, and nothing left afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.services.waiting import wait_until

COMMAND = [sys.executable, "-m", "homing.cli", "demo", "--jobs", "8", "--seed", "3", "--json"]


def processes_of(folder: Path) -> list[str]:
    """Every process that still works in the demo's folder."""
    found = []
    for process in psutil.process_iter(["cmdline", "environ"]):
        words = " ".join(process.info["cmdline"] or ())
        environ = process.info["environ"] or {}
        if str(folder) in words or environ.get("HOMING_DATA_DIR") == str(folder):
            found.append(words)
    return found


@pytest.mark.timeout(240)
def test_every_job_comes_home_and_nothing_is_left_running(tmp_path: Path) -> None:
    done = subprocess.run([*COMMAND, "--data-dir", str(tmp_path)], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    proof = json.loads(done.stdout)
    assert proof["held"] is True
    assert proof["jobs"] == 8
    assert {check["name"] for check in proof["checks"]} >= {"billed", "home", "effects", "illegal_transitions"}
    assert "8/8 home" in done.stderr
    assert processes_of(tmp_path) == []


@pytest.mark.timeout(420)
def test_processes_that_are_killed_meanwhile_cost_neither_a_job_nor_an_effect(tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "--kill", "--data-dir", str(tmp_path)], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    proof = json.loads(done.stdout)
    assert proof["held"] is True
    assert sum(proof["figures"]["killed"].values()) >= 1
    assert {check["name"] for check in proof["checks"]} >= {"killed", "billed", "home", "effects", "effect_events"}


@pytest.mark.timeout(120)
def test_an_interrupted_demo_takes_everything_with_it(tmp_path: Path) -> None:
    demo = subprocess.Popen(
        [*COMMAND, "--data-dir", str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert demo.stderr is not None
    for line in demo.stderr:
        if "submitting" in line:
            break
    assert processes_of(tmp_path) != []

    os.kill(demo.pid, signal.SIGINT)
    demo.communicate()

    assert demo.returncode not in (0, None)
    assert processes_of(tmp_path) == []


@pytest.mark.timeout(120)
def test_a_demo_that_is_killed_leaves_nothing_behind(tmp_path: Path) -> None:
    demo = subprocess.Popen(
        [*COMMAND, "--data-dir", str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert demo.stderr is not None
    for line in demo.stderr:
        if "submitting" in line:
            break

    demo.kill()
    demo.communicate()

    wait_until(lambda: not processes_of(tmp_path), within_s=60, what="the end of every process", every_s=0.2)
