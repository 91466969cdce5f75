"""Heartbeats: what works says so, in the database, each time it has worked.

A process that lives proves nothing, so a heartbeat is written by finished work only: a sweep that came to its end, a
canary that travelled through its queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from jobs.core import instants
from jobs.core.events import EventType
from jobs.storage.database import Transaction
from jobs.storage.outbox import append_event
from jobs.storage.schema import heartbeats

# Three in a row may be late; ten seconds are for a restart.
_PERIODS = 3
_GRACE = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The last sign of life of one name.

    Attributes:
        beat_at: When it last worked.
        period: How often it should.
        missed_at: Since when it is known to be missing; None while it is not.
    """

    name: str
    beat_at: datetime
    period: timedelta
    missed_at: datetime | None

    def is_stale(self, now: datetime, *, listening_since: datetime | None = None) -> bool:
        """Whether the silence is longer than 3 periods + 10 s.

        Args:
            now: By the database's clock.
            listening_since: Counts no silence before this instant: a fleet that was switched off was not missing.
        """
        heard_at = max(self.beat_at, listening_since or self.beat_at)
        return now - heard_at > _PERIODS * self.period + _GRACE


def list_heartbeats(tx: Transaction) -> list[Heartbeat]:
    """All heartbeats, by name."""
    rows = tx.rows(sa.select(heartbeats).order_by(heartbeats.c.name))
    return [
        Heartbeat(row["name"], row["beat_at"], timedelta(seconds=row["period_s"]), row["missed_at"]) for row in rows
    ]


def expect(tx: Transaction, periods: Mapping[str, timedelta]) -> None:
    """Makes names known that have not worked yet, so that their absence is noticed too."""
    known = {beat.name for beat in list_heartbeats(tx)}
    new = {name: period for name, period in periods.items() if name not in known}
    if new:
        tx.execute(tx.insert(heartbeats).on_conflict_do_nothing(), _rows(tx, new))


def beat(tx: Transaction, periods: Mapping[str, timedelta]) -> list[str]:
    """Writes that each of these has worked now.

    Args:
        tx: The open transaction.
        periods: Name → how often it promises to work.

    Returns:
        The names that had been missing; each has its ``heartbeat.recovered``.
    """
    recovered = _recover(tx, sorted(periods))
    statement = tx.insert(heartbeats)
    later = statement.excluded.beat_at > heartbeats.c.beat_at  # a late writer moves nothing back
    values = {"beat_at": statement.excluded.beat_at, "period_s": statement.excluded.period_s}
    upsert = statement.on_conflict_do_update(index_elements=["name"], set_=values, where=later)
    tx.execute(upsert, _rows(tx, periods))
    return recovered


def mark_missed(tx: Transaction, seen: Heartbeat) -> bool:
    """Writes ``heartbeat.missed``, once for a silence; False where it has been written or the silence is over."""
    still = sa.and_(
        heartbeats.c.name == seen.name, heartbeats.c.missed_at.is_(None), heartbeats.c.beat_at == seen.beat_at
    )
    if tx.execute(sa.update(heartbeats).where(still).values(missed_at=tx.now)).rowcount != 1:
        return False
    _announce(tx, EventType.HEARTBEAT_MISSED, seen)
    return True


def _recover(tx: Transaction, names: list[str]) -> list[str]:
    back = [beat for beat in list_heartbeats(tx) if beat.name in names and beat.missed_at is not None]
    return [beat.name for beat in back if _mark_recovered(tx, beat)]


def _mark_recovered(tx: Transaction, seen: Heartbeat) -> bool:
    still = sa.and_(heartbeats.c.name == seen.name, heartbeats.c.missed_at == seen.missed_at)
    if tx.execute(sa.update(heartbeats).where(still).values(missed_at=None)).rowcount != 1:
        return False
    _announce(tx, EventType.HEARTBEAT_RECOVERED, seen)
    return True


def _announce(tx: Transaction, event_type: EventType, seen: Heartbeat) -> None:
    silence = {
        "name": seen.name,
        "period_s": seen.period.total_seconds(),
        "last_beat_at": instants.to_text(seen.beat_at),
        "silent_s": round((tx.now - seen.beat_at).total_seconds(), 3),
    }
    append_event(tx, event_type, tenant=None, data={"heartbeat": silence})


def _rows(tx: Transaction, periods: Mapping[str, timedelta]) -> list[dict[str, Any]]:
    # In the order of their names, so that two writers of the same rows cannot lock each other out.
    return [{"name": name, "beat_at": tx.now, "period_s": periods[name].total_seconds()} for name in sorted(periods)]
