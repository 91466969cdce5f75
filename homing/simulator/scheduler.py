"""One thread and one heap: everything the simulator does later, it does from here.

Actions run on the timer thread and must be quick; what takes time hands itself to a pool.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
from collections.abc import Callable

from jobs.clock import Clock

log = logging.getLogger(__name__)

Action = Callable[[], object]


class Scheduler:
    """Runs actions at their time.

    Tests that hold a fake clock leave it unstarted and call `run_due` after each step of the clock.
    """

    def __init__(self, clock: Clock) -> None:
        """Build it idle; `start` gives it its thread."""
        self._clock = clock
        self._heap: list[tuple[float, int, Action]] = []
        self._order = itertools.count()
        self._changed = threading.Condition()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def after(self, delay_s: float, action: Action) -> None:
        """Run `action` once, `delay_s` seconds from now; equal times keep the order of their calls."""
        due = self._clock.monotonic() + max(0.0, delay_s)
        with self._changed:
            heapq.heappush(self._heap, (due, next(self._order), action))
            self._changed.notify()

    def run_due(self) -> int:
        """Run what is due now, also what that makes due at once; how many ran."""
        count = 0
        while (action := self._pop_due()) is not None:
            count += 1
            try:
                action()
            except Exception:
                log.exception("a scheduled action failed and is dropped")
        return count

    def start(self) -> None:
        """Begin to run by itself."""
        self._thread = threading.Thread(target=self._loop, name="simulator-timer", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop; what is not yet due never runs."""
        with self._changed:
            self._stopping = True
            self._heap.clear()
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _loop(self) -> None:
        while not self._stopping:
            self.run_due()
            with self._changed:
                if not self._stopping:
                    self._changed.wait(self._wait_s())

    def _wait_s(self) -> float | None:
        return max(0.0, self._heap[0][0] - self._clock.monotonic()) if self._heap else None

    def _pop_due(self) -> Action | None:
        with self._changed:
            if self._stopping or not self._heap or self._heap[0][0] > self._clock.monotonic():
                return None
            return heapq.heappop(self._heap)[2]
