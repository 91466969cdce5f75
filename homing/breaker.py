"""A circuit breaker: after some failures in a row, whoever asks is refused for a while instead of made to wait."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Breaker:
    """Closed while things work; open for a span after too many failures in a row; then one probe decides.

    Thread-safe. Every ``allows()`` that said yes is followed by ``succeeded()`` or ``failed()``.
    """

    def __init__(self, *, failures: int, open_s: float, monotonic: Callable[[], float]) -> None:
        """Starts closed.

        Args:
            failures: How many in a row open it.
            open_s: For how long it then refuses.
            monotonic: A clock in seconds that only grows.
        """
        self._limit = failures
        self._open_s = open_s
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._in_a_row = 0
        self._next_probe_at = 0.0

    def allows(self) -> bool:
        """Whether to try now. Of several who ask when the time is up, one may."""
        with self._lock:
            if self._in_a_row < self._limit:
                return True
            if self._monotonic() < self._next_probe_at:
                return False
            self._next_probe_at = self._monotonic() + self._open_s
            return True

    def succeeded(self) -> None:
        """It worked: closed."""
        with self._lock:
            self._in_a_row = 0

    def failed(self) -> bool:
        """It did not; returns whether this failure opened the breaker."""
        with self._lock:
            self._in_a_row += 1
            self._next_probe_at = self._monotonic() + self._open_s
            return self._in_a_row == self._limit
