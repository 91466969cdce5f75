"""What the doctor found, before any judgement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Silence:
    """A heartbeat: how long ago, and whether that is too long."""

    name: str
    age_s: float
    is_stale: bool


@dataclass(frozen=True, slots=True)
class DatabaseFacts:
    """What the database says of the work.

    Attributes:
        jobs: by state.
        reviews: open jobs that wait for a person, by reason.
        dead_letters: open ones, by kind.
        letters_surge_s: for how long dead letters have come faster than they should; none: they do not.
        heartbeats: each sign of life the fleet has left.
        due_s: for each kind of work on jobs, how long its oldest piece has been due.
        unheard_oldest_s: how long a run has told its output to nobody.
        outbox_oldest_s: age of the oldest event that was not relayed.
        inbox_oldest_s: age of the oldest stored webhook that was not applied.
        delivery_oldest_s: how long the endpoint that has waited longest could have been sent something.
        writer: who holds SQLite's writer lock, and for how many seconds, where it is for too long.
        parked: webhooks that name a run nobody knows.
        overdue_leases: jobs whose worker let its lease run out long ago.
        paused: provider entries somebody has paused.
        outages: provider entries that are away while somebody waits for them, and for how many seconds.
        failing_handlers: events that wait for another try, by handler.
    """

    jobs: Mapping[str, int] = field(default_factory=dict)
    reviews: Mapping[str, int] = field(default_factory=dict)
    dead_letters: Mapping[str, int] = field(default_factory=dict)
    letters_surge_s: float | None = None
    heartbeats: tuple[Silence, ...] = ()
    due_s: Mapping[str, float] = field(default_factory=dict)
    unheard_oldest_s: float | None = None
    outbox_oldest_s: float | None = None
    inbox_oldest_s: float | None = None
    delivery_oldest_s: float | None = None
    writer: tuple[int, float] | None = None
    parked: int = 0
    overdue_leases: int = 0
    paused: tuple[str, ...] = ()
    outages: Mapping[str, float] = field(default_factory=dict)
    failing_handlers: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RedisFacts:
    """Messages that wait, by queue, and those a worker holds."""

    queues: Mapping[str, int] = field(default_factory=dict)
    unacked: int = 0


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything.

    Attributes:
        database: none where it could not be read; `database_fault` says why.
        redis: none where it does not answer; `redis_fault` says why.
        processes: of a fleet that `homing up` started from the data dir, main process alive or not; none: there is
            no such fleet.
        stopped: of that fleet, by process name, who is stopped: it lives, and does nothing.
        up_s: how long that fleet has been running; none: there is none, or it cannot be told.
        data_dir: where its files are.
    """

    data_dir: str
    database: DatabaseFacts | None = None
    database_fault: str = ""
    redis: RedisFacts | None = None
    redis_fault: str = ""
    processes: Mapping[str, bool] | None = None
    stopped: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    up_s: float | None = None
