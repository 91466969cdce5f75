"""A run: one piece of work a client was billed for, and where it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from homing.simulator.faults import NO_FAULTS, Faults
from homing.simulator.models import ResultFile


class Status(StrEnum):
    """The provider's words."""

    QUEUED = "queued"
    PROCESSING = "processing"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"

    @property
    def is_terminal(self) -> bool:
        """Whether the run has ended."""
        return self in (Status.SUCCEEDED, Status.FAILED, Status.CANCELED)


@dataclass(frozen=True, slots=True)
class Order:
    """What a client asked for.

    Attributes:
        dialect: whose words it was asked for in; none: our own.
        asked: the request in the dialect's words, for its answers to repeat.
        id_prefix: what the run's id begins with.
    """

    model: str
    input: Mapping[str, object]
    callback_url: str | None = None
    reference: str | None = None
    key: str | None = None
    dialect: str | None = None
    asked: Mapping[str, object] = field(default_factory=dict)
    id_prefix: str = "p-"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended."""

    status: Status
    output: dict[str, object] | None = None
    error: dict[str, str] | None = None
    files: tuple[ResultFile, ...] = ()
    cost: float = 0.0


@dataclass(slots=True, eq=False)
class Run:
    """One run. Only the run book changes it, under its lock.

    Attributes:
        duration_s: how long it works, on the simulator's (perhaps scaled) clock.
        started_s: monotonic, when it began to work.
        reads: status reads so far.
        listeners: how often its output was listened to so far.
    """

    id: str
    order: Order
    submitted_at: datetime
    duration_s: float
    faults: Faults = NO_FAULTS
    status: Status = Status.QUEUED
    started_s: float = 0.0
    finished_at: datetime | None = None
    outcome: Outcome | None = None
    reads: int = field(default=0)
    listeners: int = field(default=0)

    def progress(self, now_s: float) -> float:
        """From 0 to 1; 1 only when it succeeded."""
        if self.status is Status.SUCCEEDED:
            return 1.0
        if self.status is not Status.PROCESSING:
            return 0.0
        done = (now_s - self.started_s) / self.duration_s if self.duration_s else 1.0
        return round(max(0.0, min(0.99, done)), 3)
