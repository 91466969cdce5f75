"""How the whole fleet is doing, with reasons where it is not well: Redis, workers, sweeps, the oldest waiting rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from jobs.core.durations import format_duration
from jobs.core.errors import Unavailable
from jobs.services.letters.growth import ALARM as LETTER_ALARM
from jobs.storage.alarms import raised_since
from jobs.storage.database import Database, Transaction
from jobs.storage.jobs import DUE_COLUMNS
from jobs.storage.tallies import list_outages, oldest_due, oldest_unheard, oldest_unrelayed
from reconciler.heartbeats import Heartbeat, list_heartbeats
from reconciler.schedule import expected_heartbeats
from webhooks.incoming.tallies import oldest_webhook
from webhooks.outgoing.tallies import oldest_delivery

#: Work is begun within seconds; a row that is due for longer means that nobody begins it.
LATE = timedelta(seconds=60)

#: A transaction takes milliseconds; one that lasts is stuck, and every writer with it.
WRITER_STUCK = timedelta(seconds=5)

_QUEUE = "queue."


@dataclass(slots=True)
class FleetHealth:
    """What was found.

    Attributes:
        reasons: Why the fleet is not well, one sentence each; empty where it is.
        redis: Whether Redis answers.
        workers: By queue: seconds since a message last travelled through it; None = never.
        sweeps: By sweep: seconds since it last came to its end; None = never.
        oldest: By kind of work: seconds the longest due row has waited; None = none is due.
        outages: By provider that is away, and waited for: for how many seconds.
    """

    reasons: list[str] = field(default_factory=list)
    redis: bool = False
    workers: dict[str, float | None] = field(default_factory=dict)
    sweeps: dict[str, float | None] = field(default_factory=dict)
    oldest: dict[str, float | None] = field(default_factory=dict)
    outages: dict[str, float | None] = field(default_factory=dict)

    @property
    def document(self) -> dict[str, Any]:
        """As ``/fleetz`` shows it."""
        return {
            "status": "degraded" if self.reasons else "ok",
            "reasons": self.reasons,
            "redis": {"reachable": self.redis},
            "workers": self.workers,
            "sweeps": self.sweeps,
            "oldest": self.oldest,
            "outages": self.outages,
        }


def examine(database: Database, *, redis_fault: Callable[[], str | None]) -> FleetHealth:
    """Looks at the fleet; never raises for what it looks at.

    Args:
        database: Where heartbeats and work are.
        redis_fault: Says why Redis cannot be used, or None.
    """
    health = FleetHealth()
    fault = redis_fault()
    health.redis = fault is None
    if fault is not None:
        health.reasons.append(
            f"Redis does not answer ({fault}): webhooks are still stored; all other work waits for it"
        )
    try:
        with database.read() as tx:
            _read_heartbeats(tx, health)
            _read_oldest(tx, health)
            _read_letters(tx, health)
            _read_outages(tx, health)
    except Unavailable as error:
        health.reasons.append(error.detail)
    holder = database.find_writer()
    if holder is not None and holder.for_s > WRITER_STUCK.total_seconds():
        health.reasons.append(f"process {holder.pid} has held the database's write lock for {holder.for_s:.0f} s")
    return health


def _read_letters(tx: Transaction, health: FleetHealth) -> None:
    since = raised_since(tx, LETTER_ALARM)
    if since is not None:
        span = format_duration(_whole_seconds(tx.now - since))
        health.reasons.append(
            f"dead letters have come faster than they should for {span}: `homing dead-letters list` shows them"
        )


def _read_heartbeats(tx: Transaction, health: FleetHealth) -> None:
    known = {beat.name: beat for beat in list_heartbeats(tx)}
    for name in expected_heartbeats():
        beat = known.get(name)
        group = health.workers if name.startswith(_QUEUE) else health.sweeps
        group[name.partition(".")[2]] = _age_s(tx.now, beat.beat_at if beat else None)
        if beat is None or beat.is_stale(tx.now):
            health.reasons.append(_silence(name, beat, tx.now))


def _silence(name: str, beat: Heartbeat | None, now: datetime) -> str:
    since = f"for {format_duration(_whole_seconds(now - beat.beat_at))}" if beat else "yet"
    what = name.partition(".")[2]
    if name.startswith(_QUEUE):
        return f"no worker has taken a message from queue {what} {since}: is the worker up, and beat?"
    return f"sweep {what} has not come to its end {since}: is beat up, and the worker of queue reconcile?"


def _read_oldest(tx: Transaction, health: FleetHealth) -> None:
    for name, since in _waiting_since(tx):
        age_s = _age_s(tx.now, since)
        health.oldest[name] = age_s
        if age_s is not None and age_s > LATE.total_seconds():
            health.reasons.append(f"the oldest of {name} has waited for {format_duration(timedelta(seconds=age_s))}")


def _read_outages(tx: Transaction, health: FleetHealth) -> None:
    for name, account in list_outages(tx).items():
        lasted = tx.now - account["outage_at"]
        health.outages[name] = _age_s(tx.now, account["outage_at"])
        span = format_duration(_whole_seconds(lasted))
        health.reasons.append(f"provider {name} has been away for {span}: {account['outage_reason']}")


def _waiting_since(tx: Transaction) -> Iterator[tuple[str, datetime | None]]:
    for kind in DUE_COLUMNS:
        yield f"due {kind}s", oldest_due(tx, kind)
    yield "output to listen to", oldest_unheard(tx)
    yield "events to relay", oldest_unrelayed(tx)
    yield "webhooks to apply", oldest_webhook(tx)
    yield "deliveries to send", oldest_delivery(tx)


def _age_s(now: datetime, since: datetime | None) -> float | None:
    return None if since is None else max(round((now - since).total_seconds(), 3), 0.0)


def _whole_seconds(span: timedelta) -> timedelta:
    return timedelta(seconds=round(span.total_seconds()))
