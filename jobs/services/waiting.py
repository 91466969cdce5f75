"""Long polls: requests that wait for a job to change.

However many wait, one thread of the process reads the versions of all watched jobs in one query, five times a
second, and only while somebody waits. A waiter holds a server thread, so there are only so many seats; whoever finds
none is answered at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import structlog

from jobs.core.errors import Unavailable
from jobs.storage.database import Database
from jobs.storage.listing import find_versions

PERIOD = timedelta(milliseconds=200)
MAX_WAIT = timedelta(seconds=60)

_log = structlog.get_logger(__name__)


@dataclass(slots=True, eq=False)
class _Waiter:
    job_id: str
    since: int
    changed: threading.Event = field(default_factory=threading.Event)


class WaitingRoom:
    """The waiters of one process, and the one thread that watches for them."""

    def __init__(
        self,
        read_versions: Callable[[list[str]], Mapping[str, int]],
        *,
        seats: int,
        period: timedelta = PERIOD,
    ) -> None:
        """Starts nothing yet.

        Args:
            read_versions: Asks for the versions of some jobs.
            seats: How many may wait at a time.
            period: How long the watcher rests between two looks.
        """
        self._read_versions = read_versions
        self._seats = seats
        self._period_s = period.total_seconds()
        self._lock = threading.Lock()
        self._waiters: set[_Waiter] = set()
        self._is_watching = False
        self._left = threading.Event()  # set when the last waiter leaves, so that the watcher need not rest on

    @classmethod
    def over(cls, database: Database, *, seats: int) -> WaitingRoom:
        """A room that watches a database."""

        def read_versions(job_ids: list[str]) -> Mapping[str, int]:
            with database.read() as tx:
                return find_versions(tx, job_ids)

        return cls(read_versions, seats=seats)

    @property
    def occupied(self) -> int:
        """How many wait now."""
        return len(self._waiters)

    def wait(self, job_id: str, *, since: int, at_most: timedelta) -> bool:
        """Waits until the job's version is another than ``since``.

        Returns:
            Whether it changed; False at the time-out, or where no seat was free.
        """
        waiter = _Waiter(job_id, since)
        if not self._sit_down(waiter):
            return False
        try:
            return waiter.changed.wait(min(at_most, MAX_WAIT).total_seconds())
        finally:
            self._stand_up(waiter)

    def _sit_down(self, waiter: _Waiter) -> bool:
        with self._lock:
            if len(self._waiters) >= self._seats:
                return False
            self._waiters.add(waiter)
            self._left.clear()
            if not self._is_watching:
                self._is_watching = True
                threading.Thread(target=self._watch, name="long-poll-watcher", daemon=True).start()
        return True

    def _stand_up(self, waiter: _Waiter) -> None:
        with self._lock:
            self._waiters.discard(waiter)
            if not self._waiters:
                self._left.set()

    def _watch(self) -> None:
        while watched := self._watched():
            try:
                self._look(watched)
            except Unavailable as error:  # waiters keep their time-outs; the next look may succeed
                _log.warning("long polls cannot see the database", reason=str(error))
            except Exception:
                self._abandon()
                raise
            self._left.wait(self._period_s)

    def _watched(self) -> list[_Waiter]:
        """Who waits; where nobody does, the watch is over, decided under the lock that a newcomer takes."""
        with self._lock:
            self._is_watching = bool(self._waiters)
            return list(self._waiters)

    def _look(self, watched: list[_Waiter]) -> None:
        versions = self._read_versions(sorted({waiter.job_id for waiter in watched}))
        for waiter in watched:
            if versions.get(waiter.job_id) != waiter.since:
                waiter.changed.set()

    def _abandon(self) -> None:
        """The watcher dies of a fault: nobody may wait for it."""
        with self._lock:
            self._is_watching = False
            for waiter in self._waiters:
                waiter.changed.set()
