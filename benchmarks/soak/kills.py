"""Kills a process of the fleet now and then, by pid: the mixed load of a real month, in the first half of a soak."""

from __future__ import annotations

import itertools
import threading
from collections import Counter

from homing.demo.killing import kill
from homing.up.fleet import Fleet

# Children first; of a main process and its children the supervisor and the server bring everything back.
_VICTIMS = (("worker-io", 1), ("web", 1), ("worker-events", 1), ("beat", 0), ("worker-io", 0), ("redis", 0), ("web", 0))


class Killer:
    """One thread that kills in turn."""

    def __init__(self, fleet: Fleet, *, every_s: float, for_s: float) -> None:
        self.killed: Counter[str] = Counter()
        self._fleet, self._every_s, self._times = fleet, every_s, int(for_s / every_s) if every_s else 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._kill, name="killer", daemon=True)

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def stop(self) -> None:
        """Ends."""
        self._stopping.set()
        self._thread.join()

    def _kill(self) -> None:
        for name, number in itertools.islice(itertools.cycle(_VICTIMS), self._times):
            if self._stopping.wait(self._every_s):
                return
            pids = self._fleet.running.pids.get(name, [])
            if len(pids) > number:
                self.killed[f"{name} {'child' if number else 'main'}"] += kill(pids[number])
