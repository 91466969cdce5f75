"""Children of a worker that are stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from homing.child_watch import ChildWatch, is_stopped
from tests.services.waiting import wait_until


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


def test_a_child_that_stays_stopped_is_killed_after_its_time_and_not_before(child: int) -> None:
    watch, killed = ChildWatch(every_s=5.0, patience_s=30.0), list[tuple[int, int]]()
    stop(child)

    for _ in range(6):
        watch.look([child], kill=lambda *one: killed.append(one))
    assert killed == []
    watch.look([child], kill=lambda *one: killed.append(one))

    assert killed == [(child, signal.SIGKILL)]


def test_a_child_that_goes_on_in_between_has_its_time_anew(child: int) -> None:
    watch, killed = ChildWatch(every_s=5.0, patience_s=10.0), list[tuple[int, int]]()
    looks = ("stopped", "stopped", "goes on", "stopped", "stopped")

    for state in looks:
        if state == "goes on":
            go_on(child)
        else:
            stop(child)
        watch.look([child], kill=lambda *one: killed.append(one))

    assert killed == []


def test_a_child_that_works_or_is_gone_is_left_alone(child: int) -> None:
    watch, killed = ChildWatch(every_s=5.0, patience_s=0.0), list[tuple[int, int]]()

    watch.look([child, 2**22 + 1], kill=lambda *one: killed.append(one))

    assert killed == []


def test_a_worker_that_is_ready_again_is_looked_at_once() -> None:
    entries: list[Any] = []

    def call_repeatedly(_every_s: float, _look: Any) -> Any:
        entries.append(SimpleNamespace(live=True, cancel=lambda: setattr(entries[0], "live", False)))
        return entries[-1]

    consumer = SimpleNamespace(pool=SimpleNamespace(info={}), timer=SimpleNamespace(call_repeatedly=call_repeatedly))
    watch = ChildWatch()

    watch.begin(consumer)
    watch.begin(consumer)

    assert [entry.live for entry in entries] == [False, True]
