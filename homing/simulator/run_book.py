"""Every run of this provider, and the only hands that change one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from homing.simulator.faults import Faults
from homing.simulator.run import Order, Outcome, Run, Status
from jobs.clock import Clock
from jobs.ids import new_id


class RunBook:
    """Runs by id, by reference and by key. A run ends once: later endings are refused."""

    def __init__(self, clock: Clock) -> None:
        """Build it empty."""
        self._clock = clock
        self._lock = threading.Lock()
        self._runs: dict[str, Run] = {}
        self._by_key: dict[str, list[Run]] = {}
        self._by_reference: dict[str, list[Run]] = {}

    def open(self, order: Order, *, faults: Faults, duration_s: float) -> Run:
        """Begin a run: from here on it is billed."""
        now = self._clock.now()
        run = Run(order.id_prefix + new_id("p", at=now).removeprefix("p_"), order, now, duration_s, faults)
        with self._lock:
            self._runs[run.id] = run
            if order.key is not None:
                self._by_key.setdefault(order.key, []).append(run)
            if order.reference is not None:
                self._by_reference.setdefault(order.reference, []).append(run)
        return run

    def find(self, run_id: str) -> Run | None:
        """Return the run of this id."""
        with self._lock:
            return self._runs.get(run_id)

    def find_by_key(self, key: str, *, window: timedelta) -> Run | None:
        """Return the newest run of this key that began within the window."""
        oldest = self._clock.now() - window
        with self._lock:
            runs = self._by_key.get(key, [])
            return runs[-1] if runs and runs[-1].submitted_at > oldest else None

    def search(self, *, reference: str | None, key: str | None, until: datetime) -> list[Run]:
        """Return the runs of a reference or a key that began by `until`."""
        with self._lock:
            found = list(self._by_reference.get(reference, [])) if reference is not None else []
            if key is not None:
                found += [run for run in self._by_key.get(key, []) if run not in found]
        return [run for run in found if run.submitted_at <= until]

    def list_runs(self) -> list[Run]:
        """Return every run, oldest first."""
        with self._lock:
            return list(self._runs.values())

    def count_read(self, run: Run) -> int:
        """Note a status read; how many there were before it."""
        with self._lock:
            run.reads += 1
            return run.reads - 1

    def count_listener(self, run: Run) -> int:
        """Note that somebody listens to its output; how often that was before."""
        with self._lock:
            run.listeners += 1
            return run.listeners - 1

    def begin(self, run: Run) -> bool:
        """Let a queued run work; false where it is past that."""
        return self._change(run, allowed=lambda: run.status is Status.QUEUED, change=self._start)

    def settle(self, run: Run, outcome: Outcome) -> bool:
        """End a run; false where it has ended before."""

        def end(target: Run) -> None:
            target.status, target.outcome, target.finished_at = outcome.status, outcome, self._clock.now()

        return self._change(run, allowed=lambda: not run.status.is_terminal, change=end)

    def _start(self, run: Run) -> None:
        run.status, run.started_s = Status.PROCESSING, self._clock.monotonic()

    def _change(self, run: Run, *, allowed: Callable[[], bool], change: Callable[[Run], None]) -> bool:
        with self._lock:
            if not allowed():
                return False
            change(run)
            return True
