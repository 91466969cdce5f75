"""What beat ticks, as data in code.

A schedule kept in Redis goes silently empty when Redis is wiped; this one has no state at all. Two beats are
harmless: a tick that finds its lock held, or nothing due, costs a millisecond.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from jobs.broker import CANARY, EVENT_QUEUES, IO_QUEUES, SWEEP
from reconciler.lock import check_ttl

# A message older than its period is pointless: the next one is on its way. The rest of its life is for clocks of
# several machines that disagree; without it, a worker two seconds ahead would throw every tick away unseen.
_CLOCK_SKEW = timedelta(seconds=5)
CANARY_PERIOD = timedelta(seconds=15)


@dataclass(frozen=True, slots=True)
class Tick:
    """One message of beat, and the sweeps it starts, one after another under one lock and one epoch.

    Attributes:
        name: Of its lock, its epoch and its message.
        period: How often; what the heartbeats of its sweeps promise.
        sweeps: Names of the sweeps.
        bound: A sweep begins no further pass after this time; the next tick goes on.
        lock_ttl: How long a dead worker's lock blocks the next one. Longer than one pass, and shorter than what
            makes a heartbeat stale; renewed between passes.
    """

    name: str
    period: timedelta
    sweeps: tuple[str, ...]
    bound: timedelta = timedelta(seconds=2)
    lock_ttl: timedelta = timedelta(seconds=10)

    def __post_init__(self) -> None:
        """Refuses what would never sweep, or never exclude.

        Raises:
            ValueError: A period, a bound or a lock's length of nothing, or no sweep.
        """
        check_ttl(self.lock_ttl)
        if self.period <= timedelta(0) or self.bound <= timedelta(0) or not self.sweeps:
            raise ValueError(f"tick {self.name!r} needs a period, a bound and at least one sweep")


_EACH_SECOND = timedelta(seconds=1)
_NOW_AND_THEN = timedelta(seconds=5)  # nets under bells that got lost
_AT_LEISURE = timedelta(seconds=15)

TICKS: tuple[Tick, ...] = (
    # One message for all of them: each costs a claim that finds nothing, a message costs ten times as much.
    Tick(
        "due",
        _EACH_SECOND,
        ("submits", "polls", "cancels", "extra_runs", "alarms", "artifacts", "streams", "deliveries", "redrives"),
    ),
    Tick("inbox", _NOW_AND_THEN, ("inbox",)),
    Tick("outbox", _NOW_AND_THEN, ("outbox",)),
    Tick("handlers", _NOW_AND_THEN, ("handlers",)),
    Tick("learning", _AT_LEISURE, ("learning", "letters")),
)


def find_tick(name: str) -> Tick | None:
    """The tick of that name; None for one of another release."""
    return next((tick for tick in TICKS if tick.name == name), None)


def expected_heartbeats() -> dict[str, timedelta]:
    """Every heartbeat a healthy fleet leaves, with its period."""
    sweeps = {f"sweep.{name}": tick.period for tick in TICKS for name in tick.sweeps}
    queues = {f"queue.{name}": CANARY_PERIOD for name in (*EVENT_QUEUES, *IO_QUEUES)}
    return {**sweeps, **queues}


def beat_schedule() -> dict[str, dict[str, Any]]:
    """The schedule as Celery's ``beat_schedule`` wants it."""
    sweeps = {f"sweep.{tick.name}": _entry(SWEEP, tick.name, tick.period, "reconcile") for tick in TICKS}
    canaries = {f"canary.{queue}": _entry(CANARY, queue, CANARY_PERIOD, queue) for queue in (*EVENT_QUEUES, *IO_QUEUES)}
    return {**sweeps, **canaries}


def _entry(task: str, argument: str, period: timedelta, queue: str) -> dict[str, Any]:
    expires_s = (period + _CLOCK_SKEW).total_seconds()
    return {"task": task, "args": (argument,), "schedule": period, "options": {"queue": queue, "expires": expires_s}}
