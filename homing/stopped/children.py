"""A worker's children.

A child that is stopped lives, and its worker does; canaries go round it, so that every heartbeat is fresh. But what it
holds, a database's write lock perhaps, nobody else gets, and a message it was handed nobody sees. Celery's own limit
counts from the start of a task: a child that is stopped between two is never missed. So the main process looks; the
pool starts another child at once, and what the killed one held is taken up by others as after any death.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from homing.stopped.watch import StoppedWatch


class ChildWatch:
    """Looks at a worker's children, in its main process's own loop: a thread beside it could not be forked safely."""

    def __init__(self, watch: StoppedWatch | None = None) -> None:
        """Looks at nobody yet; the watch judges whoever is stopped."""
        self._watch = watch or StoppedWatch()
        self._entry: Any = None

    def begin(self, sender: Any, **_: Any) -> None:
        """The worker is ready: looks from now on, also while a lost connection is made anew (the timer outlives it)."""
        if self._entry is not None:
            self._entry.cancel()
        pool, watch = sender.pool, self._watch
        self._entry = sender.timer.call_repeatedly(watch.every_s, lambda: watch.look(_pids_of(pool)))


def _pids_of(pool: Any) -> Iterable[int]:
    """A pool of threads has none."""
    pids: Iterable[int] = pool.info.get("processes", ())
    return pids
