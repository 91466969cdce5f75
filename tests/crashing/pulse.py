"""Whether the fleet still gets anything done: on a machine that is busy otherwise, deaths wait for it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import sqlalchemy as sa

from jobs.core.errors import JobsError
from jobs.storage.database import Database
from jobs.storage.schema import job_attempts, jobs

_ASK_EVERY_S = 0.5
#: A fleet that works moves some job several times a second.
_STALLED_S = 4.0
#: After so long it may be a death that is wanting.
_STUCK_S = 45.0
_ACCEPTED = sa.select(sa.func.count()).select_from(job_attempts).where(job_attempts.c.provider_job_id.is_not(None))
_HOME = sa.select(sa.func.count()).select_from(jobs).where(jobs.c.state.in_(("succeeded", "failed")))


@dataclass(slots=True)
class Pulse:
    """Asked by one thread, which waits to do the next harm; what the load itself moves does not count."""

    database: Database
    _asked_at_s: float = 0.0
    _moved_at_s: float = field(default_factory=time.monotonic)
    _place: tuple[object, ...] = ()

    def is_stalled(self) -> bool:
        """Whether no job has gone on for some seconds; no longer after many."""
        now_s = time.monotonic()
        if now_s - self._asked_at_s > _ASK_EVERY_S:
            self._asked_at_s = now_s
            self._look(now_s)
        return now_s - self._moved_at_s > _STALLED_S

    def _look(self, now_s: float) -> None:
        try:
            with self.database.read() as tx:
                place = tuple(tx.execute(count).scalar_one() for count in (_ACCEPTED, _HOME))
        except JobsError:
            return
        if place != self._place or now_s - self._moved_at_s > _STUCK_S:
            self._place, self._moved_at_s = place, now_s
