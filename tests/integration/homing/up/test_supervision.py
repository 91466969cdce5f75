"""What dies is restarted, and nothing outlives its runner: with stand-ins for the fleet's programs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from homing.up import run_file
from homing.up.supervision import SUPERVISOR, Program, Scratch, end_group, prepare
from tests.services.waiting import wait_until

_HEALS_WITHIN_S = 10
# A main process with one child, both deaf to everything but the signals they were born with.
_PARENT_AND_CHILD = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
time.sleep(600)
"""
_ENDS_AT_ONCE = "raise SystemExit(3)"


class Stand:
    """A supervisor over stand-in programs."""

    def __init__(self, folder: Path, *programs: Program) -> None:
        scratch = folder / "scratch"
        scratch.mkdir(parents=True)
        self.scratch = Scratch(scratch)
        self.logs = folder / "logs # in ; a %odd place"
        command = prepare(programs, self.scratch, logs=self.logs)
        self.supervisor = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)

    def pids(self, name: str) -> list[int]:
        return run_file.living_pids({name: self.scratch.pid_file(name)}).get(name, [])

    def wait_for(self, name: str, *, processes: int, other_than: int | None = None) -> list[int]:
        def is_there() -> bool:
            pids = self.pids(name)
            return len(pids) == processes and pids[0] != other_than

        wait_until(is_there, within_s=_HEALS_WITHIN_S, what=f"{name} with {processes} processes")
        return self.pids(name)

    def close(self) -> None:
        if self.supervisor.poll() is None:
            self.supervisor.terminate()
        self.supervisor.wait(timeout=20)
        for pid_file in self.scratch.folder.glob("*.pid"):
            end_group(pid_file)


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    family = Program("family", [sys.executable, "-c", _PARENT_AND_CHILD], stop_wait_s=5)
    made = Stand(tmp_path, family)
    yield made
    made.close()


def _are_gone(pids: list[int]) -> bool:
    return not any(psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie" for pid in pids)


def test_a_killed_process_comes_back_and_its_children_do_not_linger(stand: Stand) -> None:
    before = stand.wait_for("family", processes=2)

    os.kill(before[0], signal.SIGKILL)

    after = stand.wait_for("family", processes=2, other_than=before[0])
    assert set(after).isdisjoint(before)
    wait_until(lambda: _are_gone(before), within_s=5, what="the end of the orphan")


def test_restarts_are_never_given_up(tmp_path: Path) -> None:
    count = tmp_path / "starts"
    counting = f"open({str(count)!r}, 'a').write('x'); {_ENDS_AT_ONCE}"
    stand = Stand(tmp_path / "stand", Program("hopeless", [sys.executable, "-c", counting]))

    # More than the three tries after which supervisor gives up by default.
    wait_until(lambda: count.exists() and len(count.read_text()) >= 5, within_s=20, what="a fifth start")
    stand.close()


def test_a_polite_stop_leaves_nothing_behind(stand: Stand) -> None:
    pids = stand.wait_for("family", processes=2)

    stand.close()

    wait_until(lambda: _are_gone(pids), within_s=5, what="the end of both")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells a child of its parent's death")
def test_a_runner_killed_with_sigkill_leaves_nothing_behind(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    sleeper = Program("sleeper", [sys.executable, "-c", "import time; time.sleep(600)"])
    command = prepare([sleeper], Scratch(scratch), logs=tmp_path / "logs")
    runner = subprocess.Popen(
        [sys.executable, "-c", f"import subprocess; subprocess.Popen({command!r}).wait()"],
        stdout=subprocess.DEVNULL,
    )
    files = {name: Scratch(scratch).pid_file(name) for name in (SUPERVISOR, "sleeper")}
    wait_until(lambda: len(run_file.living_pids(files)) == 2, within_s=_HEALS_WITHIN_S, what="both to run")
    pids = [pid for pids in run_file.living_pids(files).values() for pid in pids]

    runner.kill()
    runner.wait()

    wait_until(lambda: _are_gone(pids), within_s=_HEALS_WITHIN_S, what="the end of what the runner started")


def test_settings_reach_the_program_and_never_its_command_line(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    code = f"import os, time; open({str(seen)!r}, 'w').write(os.environ['SECRET']); time.sleep(600)"
    secret = "quoted \" and %(odd)s ; # 'text'"
    stand = Stand(tmp_path / "stand", Program("reader", [sys.executable, "-c", code], {"SECRET": secret}))

    wait_until(lambda: seen.exists() and seen.read_text() != "", within_s=_HEALS_WITHIN_S, what="the program")

    assert seen.read_text() == secret
    assert secret not in stand.scratch.config.read_text()
    assert (stand.scratch.folder / "reader.json").stat().st_mode & 0o777 == 0o600
    stand.close()


def test_what_a_program_prints_is_in_its_log(tmp_path: Path) -> None:
    code = "import time; print('hello from here', flush=True); time.sleep(600)"
    stand = Stand(tmp_path, Program("printer", [sys.executable, "-c", code]))
    log = stand.logs / "printer.log"

    wait_until(lambda: log.exists() and "hello" in log.read_text(), within_s=_HEALS_WITHIN_S, what="the line")
    stand.close()
