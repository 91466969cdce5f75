"""SQLite's writers queue on one lock, between threads and between processes."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from jobs.clock import SystemClock
from jobs.core.errors import Unavailable
from jobs.storage.database import Database
from jobs.storage.writer_lock import WriterLock, find_holder
from tests.services.waiting import wait_until


def lock_at(path: Path, timeout_s: float = 0.2) -> WriterLock:
    return WriterLock(path, timeout_s=timeout_s, monotonic=SystemClock().monotonic)


def can_be_had(lock: WriterLock) -> bool:
    try:
        with lock.hold():
            return True
    except Unavailable:
        return False


def test_a_second_thread_is_refused_after_its_patience(tmp_path: Path) -> None:
    lock = lock_at(tmp_path / "lock")
    answers: list[bool] = []

    with lock.hold():
        other = threading.Thread(target=lambda: answers.append(can_be_had(lock)))
        other.start()
        other.join()

    assert answers == [False]
    assert can_be_had(lock)


def test_another_process_is_excluded_too(tmp_path: Path) -> None:
    held, other = lock_at(tmp_path / "lock"), lock_at(tmp_path / "lock")

    with held.hold():
        assert not can_be_had(other)

    assert can_be_had(other)


def test_a_forked_child_does_not_share_its_parents_hold(tmp_path: Path) -> None:
    """An inherited descriptor would let the child in while the parent writes."""
    lock = lock_at(tmp_path / "lock")
    context = multiprocessing.get_context("fork")

    with lock.hold():
        child = context.Process(target=lambda: os._exit(0 if can_be_had(lock) else 3))
        child.start()
        child.join()

    assert child.exitcode == 3


def test_a_child_does_not_keep_the_hold_of_a_parent_that_was_killed(tmp_path: Path) -> None:
    """An inherited descriptor is the same open file: the lock lasts for as long as one of the two is open."""
    context = multiprocessing.get_context("fork")
    listens, lives = os.pipe()

    def hold_and_die() -> None:
        with lock_at(tmp_path / "lock").hold():
            if os.fork() == 0:
                os.close(lives)
                os.read(listens, 1)  # until the test is over
                os._exit(0)
            os.kill(os.getpid(), signal.SIGKILL)

    parent = context.Process(target=hold_and_die)
    parent.start()
    parent.join()
    try:
        assert parent.exitcode == -signal.SIGKILL
        assert can_be_had(lock_at(tmp_path / "lock", 2))
    finally:
        os.close(lives)
        os.close(listens)


def test_whoever_waits_comes_before_the_one_that_has_just_written(tmp_path: Path) -> None:
    """A process that writes without a pause starved the others until they gave up."""
    eager, waiting = lock_at(tmp_path / "lock", 5), lock_at(tmp_path / "lock", 5)
    order: list[str] = []

    def wait_for_it() -> None:
        with waiting.hold():
            order.append("waiting")

    with eager.hold():
        other = threading.Thread(target=wait_for_it)
        other.start()
        while is_free(tmp_path / "lock.turn"):
            threading.Event().wait(0.001)
    with eager.hold():
        order.append("eager")
    other.join()

    assert order == ["waiting", "eager"]


def is_free(path: Path) -> bool:
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def test_an_error_inside_gives_the_lock_back(tmp_path: Path) -> None:
    lock = lock_at(tmp_path / "lock")

    with pytest.raises(RuntimeError), lock.hold():
        raise RuntimeError

    assert can_be_had(lock)


def test_a_database_whose_writer_hangs_is_unavailable_within_its_time_out(sqlite_url: str) -> None:
    first = Database.connect(sqlite_url, write_timeout_s=0.2)
    second = Database.connect(sqlite_url, write_timeout_s=0.2)

    with first.write(), pytest.raises(Unavailable, match="write lock"), second.write():
        pass

    with second.read() as tx:
        assert tx.now is not None, "readers never wait for a writer"
    first.close()
    second.close()


def test_whoever_holds_the_lock_can_be_named(tmp_path: Path) -> None:
    lock, later = lock_at(tmp_path / "lock"), SystemClock().monotonic() + 60

    with lock.hold():
        holder = find_holder(tmp_path / "lock", monotonic=lambda: later)

    assert holder is not None
    assert holder.pid == os.getpid()
    assert 59 < holder.for_s < 61


def test_a_free_lock_is_held_by_nobody_and_looking_does_not_keep_it(tmp_path: Path) -> None:
    lock = lock_at(tmp_path / "lock")
    assert find_holder(tmp_path / "lock", monotonic=SystemClock().monotonic) is None
    with lock.hold():
        pass

    assert find_holder(tmp_path / "lock", monotonic=SystemClock().monotonic) is None
    assert can_be_had(lock)


WAITS_FOR_THE_LOCK = """
import sys
from pathlib import Path
from jobs.clock import SystemClock
from jobs.storage.writer_lock import WriterLock
with WriterLock(Path(sys.argv[1]), timeout_s=60, monotonic=SystemClock().monotonic).hold():
    pass
"""


def test_whoever_was_stopped_while_it_had_the_turn_can_be_named(tmp_path: Path) -> None:
    """The lock is free, and nobody gets past the one that waits for it."""
    command = [sys.executable, "-c", WAITS_FOR_THE_LOCK, str(tmp_path / "lock")]
    with lock_at(tmp_path / "lock").hold():
        waiting = subprocess.Popen(command)
        wait_until(lambda: not is_free(tmp_path / "lock.turn"), within_s=20, what="the other's turn")
        waiting.send_signal(signal.SIGSTOP)
        wait_until(lambda: psutil.Process(waiting.pid).status() == psutil.STATUS_STOPPED, within_s=5, what="its stop")
    try:
        holder = find_holder(tmp_path / "lock", monotonic=SystemClock().monotonic)
    finally:
        waiting.send_signal(signal.SIGCONT)

    assert waiting.wait(10) == 0
    assert holder is not None
    assert holder.pid == waiting.pid
