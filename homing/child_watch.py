"""A worker's children that were stopped and forgotten.

A child that is stopped (SIGSTOP, a debugger that went away) lives, and its worker does; canaries go round it, so that
every heartbeat is fresh. But what it holds, a database's write lock perhaps, nobody else gets, and a
message it was handed nobody sees. Celery's own limit counts from the start of a task: a child that is stopped between
two is never missed. So the main process looks at its children's state, and a child that stays stopped is killed; the
pool starts another one at once, and what it held is taken up by others as after any death.

One that a debugger holds is traced, not stopped, and is left alone. Where the main process is stopped as well (Ctrl-Z)
nobody looks, and nobody is killed.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from typing import Any

import psutil
import structlog

_EVERY_S = 5.0
# Longer than the leases: what the child held has been taken up before, so nothing depends on this.
_PATIENCE_S = 30.0

_log = structlog.get_logger(__name__)


class ChildWatch:
    """Looks at a worker's children, in its main process's own loop: a thread beside it could not be forked safely."""

    def __init__(self, *, every_s: float = _EVERY_S, patience_s: float = _PATIENCE_S) -> None:
        """Looks at nobody yet.

        Args:
            every_s: Seconds between two looks.
            patience_s: How long a child may stay stopped.
        """
        self._every_s = every_s
        self._patience_s = patience_s
        self._stopped_for_s: dict[int, float] = {}
        self._entry: Any = None

    def begin(self, sender: Any, **_: Any) -> None:
        """The worker is ready: looks from now on, also while a lost connection is made anew (the timer outlives it)."""
        if self._entry is not None:
            self._entry.cancel()
        pool = sender.pool
        self._entry = sender.timer.call_repeatedly(self._every_s, lambda: self.look(_pids_of(pool)))

    def look(self, pids: Iterable[int], *, kill: Callable[[int, int], None] = os.kill) -> None:
        """One look: counts how long each has been stopped without a break, and ends those that stay so."""
        before = self._stopped_for_s
        stopped = [pid for pid in pids if is_stopped(pid)]
        self._stopped_for_s = {pid: before[pid] + self._every_s if pid in before else 0.0 for pid in stopped}
        for pid, for_s in self._stopped_for_s.items():
            if for_s >= self._patience_s:
                _log.error("child stayed stopped and is killed; another one takes its place", pid=pid, for_s=for_s)
                kill(pid, signal.SIGKILL)
            elif pid not in before:
                _log.warning("child is stopped", pid=pid, remedy=f"kill -CONT {pid}", killed_after_s=self._patience_s)


def is_stopped(pid: int) -> bool:
    """Whether a process is stopped; one that is gone, or not ours to see, is not."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_STOPPED)
    except psutil.Error:
        return False


def _pids_of(pool: Any) -> Iterable[int]:
    """A pool of threads has none."""
    pids: Iterable[int] = pool.info.get("processes", ())
    return pids
