"""Watchdogs: threads in web processes and worker children that notice a heartbeat that is missing.

Not in beat, which may be what is missing. Any number of them may watch: each silence is written once. What watches
the watchdogs stands outside (``HOMING_HEARTBEAT_URL``).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import datetime, timedelta

import structlog

from jobs.broker import RELAY, Broker, SilentBroker
from jobs.storage.database import Database
from reconciler import heartbeats
from reconciler.counts import Counts
from reconciler.schedule import expected_heartbeats

_EVERY_S = 5.0
_log = structlog.get_logger(__name__)


def run_once(database: Database, *, listening_since: datetime | None = None) -> Counts:
    """Writes ``heartbeat.missed`` for each silence that nobody has reported yet.

    Args:
        database: Where heartbeats are.
        listening_since: Silence before this instant does not count.

    Raises:
        Unavailable: The database is away.
    """
    with database.read() as tx:
        beats, now = heartbeats.list_heartbeats(tx), tx.now
    silent = [seen for seen in beats if seen.missed_at is None and seen.is_stale(now, listening_since=listening_since)]
    if not silent:
        return Counts()
    with database.write() as tx:
        missed = [seen.name for seen in silent if heartbeats.mark_missed(tx, seen)]
    for name in missed:
        _log.error("heartbeat missed", name=name)
    return Counts(handled=len(missed))


class Watchdog:
    """One process's watch. Start it after any fork."""

    def __init__(
        self,
        database: Database,
        *,
        broker: Broker | None = None,
        expected: Mapping[str, timedelta] | None = None,
        every_s: float = _EVERY_S,
    ) -> None:
        """Starts nothing yet.

        Args:
            database: Where heartbeats are.
            broker: Rung for the events it writes.
            expected: Names that must be heard of, with their periods; the schedule's where absent.
            every_s: Seconds between two looks.
        """
        self._database = database
        self._broker = broker or SilentBroker()
        self._expected = expected_heartbeats() if expected is None else expected
        self._every_s = every_s
        self._listening_since: datetime | None = None
        self._outage = ""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        """Begins to watch."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the watch, and waits for a look under way."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def look(self) -> Counts:
        """One look; says once that it cannot see, and once that it can again."""
        try:
            counts = self._look()
        except Exception as error:  # noqa: BLE001 - a watchdog that dies of what it should report reports nothing
            self._say_blind(f"{type(error).__name__}: {error}")
            return Counts()
        if self._outage:
            _log.info("watchdog sees again")
            self._outage = ""
        return counts

    def _watch(self) -> None:
        while not self._stopped.is_set():
            self.look()
            self._stopped.wait(self._every_s)

    def _look(self) -> Counts:
        if self._listening_since is None:
            self._listening_since = self._begin()
        counts = run_once(self._database, listening_since=self._listening_since)
        if counts:
            self._broker.publish(RELAY)
        return counts

    def _begin(self) -> datetime:
        with self._database.write() as tx:
            heartbeats.expect(tx, self._expected)
            return tx.now

    def _say_blind(self, reason: str) -> None:
        if not self._outage:
            _log.warning("watchdog cannot see", reason=reason)
        self._outage = reason
