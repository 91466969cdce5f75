"""Beat's scheduler: the schedule of the code, in memory, and one line for an outage of Redis instead of thousands."""

from __future__ import annotations

from typing import Any

import structlog
from celery.beat import ScheduleEntry, Scheduler

_log = structlog.get_logger(__name__)


class Ticker(Scheduler):
    """Sends what is due. A tick that cannot be sent is left out: the next one does its work."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lost = 0

    def apply_entry(self, entry: ScheduleEntry, producer: Any = None) -> None:
        """Sends one entry's message; Celery calls this when it is due."""
        try:
            self.apply_async(entry, producer=producer, advance=False)
        except Exception as error:  # noqa: BLE001 - whatever keeps one tick from leaving, the next one must be tried
            self._count_lost(error)
            return
        if self._lost:
            _log.info("ticks are sent again", lost=self._lost)
            self._lost = 0

    def _count_lost(self, error: Exception) -> None:
        if not self._lost:
            _log.warning("ticks are not sent", reason=str(error))
        self._lost += 1
