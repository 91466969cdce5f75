"""Can this process commit a webhook? Answered by committing something, in bounded time.

A frozen database answers nothing at all, and no driver time-out is sure to fire, so the try runs in a thread of its
own: who asks waits two seconds at most, and while a try is stuck nobody starts another.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from datetime import timedelta

import structlog

from jobs.core.errors import JobsError
from jobs.storage.counters import count_up
from jobs.storage.database import Database
from jobs.storage.migrations import current_version, is_usable

PATIENCE = timedelta(seconds=1.9)
_COUNTER = "readiness_checks"

_log = structlog.get_logger(__name__)


class Readiness:
    """Tries, one try at a time; who asks meanwhile shares its answer."""

    def __init__(self, database: Database, *, patience: timedelta = PATIENCE) -> None:
        """Tries nothing yet."""
        self._database = database
        self._patience_s = patience.total_seconds()
        self._lock = threading.Lock()
        self._try: Future[str | None] | None = None
        self._usable: set[str | None] = set()  # schemas looked at before: reading our own line costs milliseconds

    def fault(self) -> str | None:
        """Why a webhook could not be committed now; None where it could."""
        try:
            return self._current_try().result(self._patience_s)
        except FutureTimeout:
            return f"the database did not answer within {self._patience_s:g} s"

    def _current_try(self) -> Future[str | None]:
        with self._lock:
            if self._try is None or self._try.done():
                self._try = Future()
                # A daemon: a try that is stuck must not keep the process from ending.
                threading.Thread(target=self._run, args=(self._try,), name="readiness", daemon=True).start()
            return self._try

    def _run(self, answer: Future[str | None]) -> None:
        try:
            answer.set_result(self._look())
        except JobsError as error:
            answer.set_result(error.detail)
        except Exception as error:  # noqa: BLE001 - whatever it is, this process cannot commit, and the log says why
            _log.error("readiness check failed", exc_info=error)
            answer.set_result(f"the database refused: {type(error).__name__}")

    def _look(self) -> str | None:
        found = current_version(self._database)
        if found not in self._usable:
            if not is_usable(found):
                return f"the schema is at {found or 'nothing'}, this release needs a newer one: run `homing migrate`"
            self._usable.add(found)
        with self._database.write() as tx:
            count_up(tx, _COUNTER)
        return None
