"""Processes of a fleet that are stopped, as the doctor finds them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from homing.doctor.examination import examine
from homing.stopped.watch import is_stopped
from homing.up import run_file
from jobs.config.loading import load
from tests.services.waiting import wait_until

# A main process, and a child of it that was not there when the file was written.
_FAMILY = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
print(child.pid, flush=True)
input()
child.kill()
"""


def test_a_child_that_is_stopped_is_named_with_its_process(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """F55: process, port and pid stay fine."""
    main = subprocess.Popen([sys.executable, "-c", _FAMILY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert main.stdout is not None
    child = int(main.stdout.readline())
    pids = {"worker-io": [main.pid], "gone": [2**22 + 1]}
    run_file.write(run_file.Running("http://127.0.0.1:1", "key", None, None, None, None, pids), tmp_path)
    environ = {"HOMING_DATA_DIR": str(tmp_path), "HOMING_REDIS_URL": "redis://127.0.0.1:1/0"}
    os.kill(child, signal.SIGSTOP)
    wait_until(lambda: is_stopped(child), within_s=5, what="the stop")
    try:
        found = examine(load(environ), environ)
    finally:
        os.kill(child, signal.SIGCONT)
        main.communicate("\n")

    assert found.facts.stopped == {"worker-io": (child,)}
    assert any(f"kill -CONT {child}" in finding.remedy for finding in found.findings)
