"""Processes that are stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from homing.stopped.watch import StoppedWatch, is_stopped
from tests.services.waiting import wait_until

Killed = list[tuple[int, int]]


@pytest.fixture
def child() -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process.pid
    process.kill()
    process.communicate()


def stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: is_stopped(pid), within_s=5, what="the stop")


def go_on(pid: int) -> None:
    os.kill(pid, signal.SIGCONT)
    wait_until(lambda: not is_stopped(pid), within_s=5, what="its going on")


needs_linux = pytest.mark.skipif(not psutil.LINUX, reason="elsewhere nobody is judged")


@needs_linux
def test_a_child_that_stays_stopped_is_killed_after_its_time_and_not_before(child: int) -> None:
    watch, killed = StoppedWatch(every_s=5.0, patience_s=30.0), Killed()
    stop(child)

    for _ in range(6):
        watch.look([child], kill=lambda *one: killed.append(one))
    assert killed == []
    watch.look([child], kill=lambda *one: killed.append(one))

    assert killed == [(child, signal.SIGKILL)]


def test_a_child_that_goes_on_in_between_has_its_time_anew(child: int) -> None:
    watch, killed = StoppedWatch(every_s=5.0, patience_s=10.0), Killed()
    looks = ("stopped", "stopped", "goes on", "stopped", "stopped")

    for state in looks:
        if state == "goes on":
            go_on(child)
        else:
            stop(child)
        watch.look([child], kill=lambda *one: killed.append(one))

    assert killed == []


def test_a_child_that_works_or_is_gone_is_left_alone(child: int) -> None:
    watch, killed = StoppedWatch(every_s=5.0, patience_s=0.0), Killed()

    watch.look([child, 2**22 + 1], kill=lambda *one: killed.append(one))

    assert killed == []


def test_a_child_stopped_again_and_again_is_not_taken_for_one_that_stays_so(child: int) -> None:
    """As tools do that limit a process's share of the processor: at each look it may just happen to be stopped."""
    watch, killed = StoppedWatch(every_s=5.0, patience_s=10.0), Killed()

    for _ in range(5):
        stop(child)
        watch.look([child], kill=lambda *one: killed.append(one))
        go_on(child)

    assert killed == []


def test_one_that_dies_before_the_blow_harms_nobody(child: int) -> None:
    def kill(_pid: int, _signal: int) -> None:
        raise ProcessLookupError

    watch = StoppedWatch(patience_s=0.0)
    stop(child)

    watch.look([child], kill=kill)


@pytest.mark.parametrize("fault", [OSError(24, "Too many open files"), NotImplementedError(), psutil.NoSuchProcess(1)])
def test_what_cannot_be_looked_at_is_passed_over(child: int, fault: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """Out of descriptors, on a kernel that counts no switches, gone: the next look may see it."""

    def refuse(_process: psutil.Process) -> int:
        raise fault

    stop(child)
    monkeypatch.setattr(psutil.Process, "num_ctx_switches", refuse)

    StoppedWatch(patience_s=0.0).look([child])

    assert not is_stopped(child)
    monkeypatch.undo()
    assert is_stopped(child)


def test_nobody_is_judged_where_a_breakpoint_looks_like_a_stop(child: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On macOS both are one state."""
    killed = Killed()
    stop(child)
    monkeypatch.setattr(psutil, "LINUX", False)

    StoppedWatch(patience_s=0.0).look([child], kill=lambda *one: killed.append(one))

    assert killed == []
