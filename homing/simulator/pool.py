"""A pool of threads that nobody waits for."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

log = logging.getLogger(__name__)


class Pool:
    """Runs work on its threads; what fails is logged, what comes after the end is dropped."""

    def __init__(self, threads: int, name: str) -> None:
        """Threads start as they are needed."""
        self._executor = ThreadPoolExecutor(threads, name)

    def spawn(self, work: Callable[[], object]) -> None:
        """Run it soon."""
        try:
            self._executor.submit(_guard, work)
        except RuntimeError:
            log.debug("work dropped: the pool is closed")

    def close(self) -> None:
        """Wait for what runs, forget what waits."""
        self._executor.shutdown(wait=True, cancel_futures=True)


def _guard(work: Callable[[], object]) -> None:
    try:
        work()
    except Exception:  # a thread's edge: the work is lost, the thread is not
        log.exception("work of the simulator failed and is dropped")
