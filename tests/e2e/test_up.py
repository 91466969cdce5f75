"""The fleet on one machine: what dies comes back, what is stopped is gone."""

from __future__ import annotations

import os
import shlex
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
import requests

from homing.up.processes import PROCESSES
from tests.e2e.fleet_process import FleetProcess, are_gone
from tests.services.waiting import wait_until

pytestmark = [pytest.mark.timeout(240)]


def _children_of(name: str) -> int:
    """How many children its command asks for."""
    words = next(shlex.split(process.command) for process in PROCESSES if process.name == name)
    option = "--workers" if "--workers" in words else "--concurrency"
    return int(words[words.index(option) + 1])


_NAMES = ("redis", "simulator", "web", "worker-events", "worker-io", "worker-streams", "beat", "flower")
_WITH_CHILDREN = ("web", "worker-events", "worker-io")
# From the fault to a process that does its work again; the promise is 30 s.
_HEALS_WITHIN_S = 30


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FleetProcess]:
    started = FleetProcess(tmp_path_factory.mktemp("fleet"))
    started.wait_ready()
    yield started
    started.stop()


def _wait_for_children(fleet: FleetProcess, name: str) -> None:
    count = _children_of(name)
    wait_until(lambda: len(fleet.pids(name)) == 1 + count, within_s=_HEALS_WITHIN_S, what=f"{count} of {name}")


def test_run_json_describes_the_running_fleet_to_its_owner_only(fleet: FleetProcess) -> None:
    for name in _WITH_CHILDREN:
        _wait_for_children(fleet, name)

    running = fleet.running

    assert stat.S_IMODE((fleet.data_dir / "run.json").stat().st_mode) == 0o600
    assert set(running.pids) == set(_NAMES)
    assert fleet.call("GET", "/v1/jobs").status_code == 200


def test_flower_shows_the_workers_to_those_with_its_password(fleet: FleetProcess) -> None:
    running = fleet.running
    assert running.flower_user
    assert running.flower_password
    url = f"{running.flower_url}/workers"

    wait_until(lambda: _answers(url), within_s=_HEALS_WITHIN_S, what="Flower")

    assert requests.get(url, timeout=5).status_code == 401
    assert requests.get(url, auth=(running.flower_user, running.flower_password), timeout=5).ok


def _answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=2).status_code == 401
    except requests.ConnectionError:
        return False


def test_a_second_fleet_from_the_same_folder_is_refused(fleet: FleetProcess) -> None:
    homing = Path(sys.executable).with_name("homing")
    again = [str(homing), "up", "--embedded", "--port", "0", "--data-dir", str(fleet.data_dir)]

    done = subprocess.run(again, capture_output=True, text=True, check=False, timeout=30)

    assert done.returncode == 2
    assert "running from" in done.stderr


@pytest.mark.parametrize("name", _NAMES)
def test_a_main_process_killed_comes_back(fleet: FleetProcess, name: str) -> None:
    before = fleet.pids(name)

    os.kill(before[0], signal.SIGKILL)

    wait_until(lambda: bool(fleet.pids(name)) and fleet.pids(name)[0] != before[0], within_s=_HEALS_WITHIN_S, what=name)
    wait_until(lambda: are_gone(before), within_s=_HEALS_WITHIN_S, what="the end of its orphans")
    wait_until(fleet._answers, within_s=_HEALS_WITHIN_S, what="the API")


@pytest.mark.parametrize("name", _WITH_CHILDREN)
def test_a_child_killed_comes_back(fleet: FleetProcess, name: str) -> None:
    _wait_for_children(fleet, name)
    victim = fleet.pids(name)[1]

    os.kill(victim, signal.SIGKILL)

    wait_until(lambda: victim not in fleet.pids(name), within_s=_HEALS_WITHIN_S, what="run.json without it")
    _wait_for_children(fleet, name)


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="elsewhere a breakpoint looks like a stop, and nobody is judged"
)
def test_a_fleet_whose_every_process_stays_stopped_comes_back(fleet: FleetProcess) -> None:
    """F55: they live, and none is there to notice it of another; the runner does."""
    for name in _WITH_CHILDREN:
        _wait_for_children(fleet, name)
    before = {name: fleet.pids(name) for name in _NAMES}

    for pid in chain.from_iterable(before.values()):
        os.kill(pid, signal.SIGSTOP)

    wait_until(lambda: are_gone([*chain.from_iterable(before.values())]), within_s=45, what="the end of them all")
    wait_until(fleet._answers, within_s=_HEALS_WITHIN_S, what="the API")
    job = _submit(fleet, "after-the-stop")
    wait_until(lambda: _are_home(fleet, [job]), within_s=60, what="a job home", every_s=0.5)


def test_every_process_killed_once_while_jobs_run_and_all_jobs_come_home(fleet: FleetProcess) -> None:
    billed_before, jobs = _runs_billed(fleet), []
    for name in _NAMES[1:] + _NAMES[:1]:
        if name == "simulator":
            continue  # the provider keeps its runs in memory; its death is the loss of the provider's truth
        jobs += [_submit(fleet, f"{name}-{number}") for number in range(3)]
        wait_until(lambda name=name: bool(fleet.pids(name)), within_s=_HEALS_WITHIN_S, what=name)
        os.kill(fleet.pids(name)[0], signal.SIGKILL)
        wait_until(fleet._answers, within_s=_HEALS_WITHIN_S, what="the API")

    wait_until(lambda: _are_home(fleet, jobs), within_s=90, what="the last job home", every_s=0.5)

    assert _runs_billed(fleet) - billed_before == len(jobs)


def _runs_billed(fleet: FleetProcess) -> int:
    """As its ledger says, once it answers: another test may just have killed it."""
    url = f"{fleet.running.simulator_url}/ledger"
    wait_until(lambda: _is_there(url), within_s=_HEALS_WITHIN_S, what="the simulator")
    return int(requests.get(url, timeout=10).json()["runs_billed"])


def _is_there(url: str) -> bool:
    try:
        return requests.get(url, timeout=2).ok
    except requests.ConnectionError:
        return False


def _submit(fleet: FleetProcess, key: str) -> str:
    body = {"provider": "simulator", "input": {"model": "video", "prompt": key, "duration_s": 1}}

    def is_accepted() -> bool:
        try:
            answer = fleet.call("POST", "/v1/jobs", json=body, headers={"Idempotency-Key": key})
        except requests.RequestException:
            return False
        accepted.append(answer.json().get("id"))
        return answer.status_code == 202

    accepted: list[str] = []
    wait_until(is_accepted, within_s=_HEALS_WITHIN_S, what="the job accepted")
    return accepted[-1]


def _are_home(fleet: FleetProcess, jobs: list[str]) -> bool:
    states = [fleet.call("GET", f"/v1/jobs/{job}").json()["state"] for job in jobs]
    return set(states) == {"succeeded"}


def test_a_polite_stop_ends_everything_and_takes_run_json_away(tmp_path: Path) -> None:
    fleet = FleetProcess(tmp_path)
    fleet.wait_ready()
    pids = fleet.every_pid()

    assert fleet.stop() == 0

    assert are_gone(pids)
    assert not (fleet.data_dir / "run.json").exists()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells a child of its parent's death")
def test_a_runner_killed_leaves_no_process_behind(tmp_path: Path) -> None:
    fleet = FleetProcess(tmp_path)
    fleet.wait_ready()
    _wait_for_children(fleet, "worker-io")
    pids = fleet.every_pid()

    fleet.process.kill()
    fleet.process.wait()

    wait_until(lambda: are_gone(pids), within_s=60, what="the end of everything it started")
    fleet.stop()
