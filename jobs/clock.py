"""Time and randomness: the only module of the product that reads either.

Everything else takes a :class:`Clock` (or the instant itself) as an argument, so a test can hold time still.
"""

from __future__ import annotations

import random
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Wall time and monotonic time, injectable."""

    def now(self) -> datetime:
        """The instant, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that only grow, for measuring spans."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


class FakeClock:
    """A clock that moves only when told to; for tests of anything that time drives."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = start
        self._elapsed_s = 0.0
        self._lock = threading.Lock()

    def now(self) -> datetime:
        with self._lock:
            return self._now

    def monotonic(self) -> float:
        with self._lock:
            return self._elapsed_s

    def advance(self, by: timedelta | float) -> None:
        """Moves time on by a span (a bare number is seconds)."""
        span = by if isinstance(by, timedelta) else timedelta(seconds=by)
        with self._lock:
            self._now += span
            self._elapsed_s += span.total_seconds()


def system_rng() -> random.Random:
    """A generator for jitter, seeded by the operating system. Not for secrets: those come from ``jobs.ids``."""
    return random.Random()
