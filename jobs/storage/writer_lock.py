"""SQLite's one writer, queued fairly.

SQLite's busy handler sleeps and retries: under several writers its p99 was 0.5-1.4 s. Here all writers of one
database, in all processes, queue on one lock file, and threads of a process on a lock before it. Whoever waits holds
the turn, a second lock file that everybody passes: the one that has just written waits behind it, and cannot be first
again while the other still sleeps. The busy timeout stays as a second net. The files are opened on first use in each
process and closed on fork and exec: a descriptor inherited over fork shares the parent's lock and excludes nobody.

Whoever holds the lock, or the turn, has signed the file: a process that was stopped with it (SIGSTOP, a debugger, a
hung disk) stops every writer, and the only remedy is to let it go on or to kill it. So it must be possible to say which
it is.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from jobs.core.errors import Unavailable

_FIRST_PAUSE_S = 0.0002
_LONGEST_PAUSE_S = 0.002
_SIGNATURE_BYTES = 40


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a database's writer lock.

    Attributes:
        pid: Its process.
        for_s: Since it took the lock.
    """

    pid: int
    for_s: float


def find_holder(path: Path, *, monotonic: Callable[[], float]) -> Holder | None:
    """Who keeps everybody else from writing at this moment: the lock's holder, else whoever holds the turn.

    Args:
        path: The lock file.
        monotonic: The clock that the holder signed with: of the machine, the same in every process.

    Returns:
        None where nobody does, or nobody signed.
    """
    return _holder_of(path, monotonic) or _holder_of(_turn_file(path), monotonic)


def _holder_of(path: Path, monotonic: Callable[[], float]) -> Holder | None:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_signature(file, monotonic())
    finally:
        os.close(file)  # and with it the lock, where it was free
    return None


def _read_signature(file: int, now: float) -> Holder | None:
    words = os.pread(file, _SIGNATURE_BYTES, 0).split()
    try:
        return Holder(int(words[0]), max(0.0, now - float(words[1])))
    except (IndexError, ValueError):
        return None


def lock_file(database: Path) -> Path:
    """The lock file of a database's file."""
    return database.with_name(database.name + ".lock")


def _turn_file(path: Path) -> Path:
    return path.with_name(path.name + ".turn")


class WriterLock:
    """A lock between threads and processes; not re-entrant."""

    def __init__(self, path: Path, *, timeout_s: float, monotonic: Callable[[], float]) -> None:
        """Names the lock file; nothing is opened yet.

        Args:
            path: The lock file, beside the database; the turn is beside it.
            timeout_s: How long ``hold`` waits before it raises.
            monotonic: A clock in seconds that only grows.
        """
        self._path = path
        self._timeout_s = timeout_s
        self._monotonic = monotonic
        self._pause = threading.Event()
        self._threads = threading.Lock()
        self._files: tuple[int, int] | None = None
        os.register_at_fork(after_in_child=self._begin_anew)

    def _begin_anew(self) -> None:
        """In a child: kept open, what it inherited would go on holding the lock of a parent that was killed with it."""
        self._threads = threading.Lock()
        for file in self._files or ():
            os.close(file)
        self._files = None

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Holds the lock.

        Raises:
            Unavailable: It could not be had within the timeout.
        """
        give_up_at = self._monotonic() + self._timeout_s
        if not self._threads.acquire(timeout=self._timeout_s):
            raise self._refused()
        try:
            turn, held = self._opened()
            self._acquire_files(turn, held, give_up_at)
            try:
                self._sign(held)
                yield
            finally:
                fcntl.flock(held, fcntl.LOCK_UN)
        finally:
            self._threads.release()

    def _opened(self) -> tuple[int, int]:
        if self._files is None:
            self._files = _open(_turn_file(self._path)), _open(self._path)
        return self._files

    def _acquire_files(self, turn: int, held: int, give_up_at: float) -> None:
        self._acquire(turn, give_up_at)
        try:
            self._sign(turn)
            self._acquire(held, give_up_at)
        finally:
            fcntl.flock(turn, fcntl.LOCK_UN)

    def _acquire(self, file: int, give_up_at: float) -> None:
        pause_s = _FIRST_PAUSE_S
        while not _try(file):
            if self._monotonic() >= give_up_at:
                raise self._refused()
            self._pause.wait(pause_s)
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    def _sign(self, file: int) -> None:
        signature = f"{os.getpid()} {self._monotonic():.3f}".ljust(_SIGNATURE_BYTES)
        os.pwrite(file, signature.encode("ascii"), 0)

    def _refused(self) -> Unavailable:
        return Unavailable(f"the database's write lock was not free within {self._timeout_s:g} s")


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _try(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
