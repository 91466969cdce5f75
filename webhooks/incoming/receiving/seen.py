"""Deliveries this process has seen committed, so that a storm of repeats costs no transaction."""

from __future__ import annotations

import threading
from collections import OrderedDict

from webhooks.incoming.events import KnownEvent, NewEvent

_CAPACITY = 20_000  # about 10 MB; a provider repeats within minutes, not within millions of events


class SeenEvents:
    """A bounded set of committed rows by delivery; the longest unused leaves first."""

    def __init__(self, capacity: int = _CAPACITY) -> None:
        self._capacity = capacity
        self._rows: OrderedDict[tuple[str, str], KnownEvent] = OrderedDict()
        self._lock = threading.Lock()

    def find_repeated(self, event: NewEvent) -> KnownEvent | None:
        """The committed row this event merely repeats; None where the database has to be asked."""
        with self._lock:
            known = self._rows.get(event.key)
            if known is None or not known.is_repeated_by(event):
                return None
            self._rows.move_to_end(event.key)
            return known

    def add(self, key: tuple[str, str], known: KnownEvent) -> None:
        """Remembers a row. Only after its commit was seen: what may still roll back must not answer anyone."""
        with self._lock:
            self._rows[key] = known
            self._rows.move_to_end(key)
            if len(self._rows) > self._capacity:
                self._rows.popitem(last=False)
