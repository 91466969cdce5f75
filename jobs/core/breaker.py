"""Whether a provider may be asked, judged by how its last calls went: closed, open, half open. Pure.

Closed, everything may go. It opens after too many calls in a row came to nothing; then nothing goes but one probe at a
time, at growing waits. Any answer closes it.

What a call came to is said in four words (:class:`Seen`). A provider that answers is not away, whatever it answers:
"no", "not found" and "later" are answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from jobs.core.backoff import Rng, retry_wait

#: Calls in a row, whoever made them, that met nobody: no connection, or a gateway that said 502, 503, 504.
AWAY_IN_A_ROW = 5
#: Calls in a row that came to nothing in any way (time-outs and unusable answers too), of so many jobs at least: what
#: one job's reads always come to is that job's trouble. More than a stretch of bad luck at a faulty provider.
FAILED_IN_A_ROW, OF_JOBS = 8, 3
#: Failures further back say nothing of today.
MEMORY = timedelta(minutes=10)
#: Waits before probes: about 2 s at first, about a minute at most, so that a recovery is noticed within one.
PROBE_BASE, PROBE_CAP = timedelta(seconds=2), timedelta(seconds=60)


class Seen(StrEnum):
    """What a call came to, as far as the provider's health goes."""

    ANSWERED = "answered"
    FAILED = "failed"  # no usable answer, which may be this job's trouble alone: time-out, 500, an unusable body
    AWAY = "away"  # nobody was there, which is no job's trouble: no connection, or a gateway that said so
    UNCLEAR = "unclear"  # our own trouble


class Mode(StrEnum):
    """What a breaker does."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"  # a probe is under way


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that came to nothing."""

    ref: str
    at: datetime
    away: bool


@dataclass(frozen=True, slots=True)
class Breaker:
    """One provider entry's state.

    Attributes:
        failures: Calls since the last answer, oldest first, as many as are needed to judge.
        opened_at: Since when nothing goes; None while closed.
        probes: How many were begun since.
        next_probe_at: When the next may go.
        probe: What the probe under way is about.
        probe_until: When it is given up, its worker having died.
    """

    failures: tuple[Failure, ...] = ()
    opened_at: datetime | None = None
    probes: int = 0
    next_probe_at: datetime | None = None
    probe: str | None = None
    probe_until: datetime | None = None

    def mode(self, now: datetime) -> Mode:
        """What it does at an instant."""
        if self.opened_at is None:
            return Mode.CLOSED
        return Mode.HALF_OPEN if self.probe_until is not None and self.probe_until > now else Mode.OPEN

    def lets_through(self, ref: str, *, now: datetime) -> bool:
        """Whether a call about this may leave: anything while closed, else the probe alone."""
        mode = self.mode(now)
        return mode is Mode.CLOSED or (mode is Mode.HALF_OPEN and self.probe == ref)

    def is_probe_due(self, now: datetime) -> bool:
        """Whether somebody should try."""
        return self.mode(now) is Mode.OPEN and (self.next_probe_at is None or self.next_probe_at <= now)


CLOSED = Breaker()


def begin_probe(breaker: Breaker, ref: str, *, now: datetime, lease: timedelta) -> Breaker:
    """Half open: a call about this may leave.

    Args:
        breaker: As it is; a probe must be due.
        ref: What it is about.
        now: The instant.
        lease: After which another may begin, whatever became of this one. Longer than a call may take.

    Raises:
        ValueError: No probe is due.
    """
    if not breaker.is_probe_due(now):
        raise ValueError("no probe is due")
    return replace(breaker, probes=breaker.probes + 1, probe=ref, probe_until=now + lease)


def observe(breaker: Breaker, seen: Seen, *, ref: str, now: datetime, rng: Rng) -> Breaker:
    """What a call came to.

    Args:
        breaker: As it is.
        seen: How the call went.
        ref: What it was about.
        now: The instant.
        rng: For the jitter of the next probe's wait.
    """
    if seen is Seen.ANSWERED:
        return CLOSED
    if breaker.opened_at is not None:
        return _after_probe(breaker, now=now, rng=rng) if breaker.probe == ref else breaker
    if seen is Seen.UNCLEAR:
        return breaker
    recent = [failure for failure in breaker.failures if now - failure.at < MEMORY]
    failures = (*recent, Failure(ref, now, seen is Seen.AWAY))[-FAILED_IN_A_ROW:]
    if not _opens(failures):
        return Breaker(failures)
    return Breaker(failures, opened_at=now, next_probe_at=now + _probe_wait(0, rng))


def _after_probe(breaker: Breaker, *, now: datetime, rng: Rng) -> Breaker:
    """It did not help; the next one waits longer."""
    wait = _probe_wait(breaker.probes, rng)
    return replace(breaker, next_probe_at=now + wait, probe=None, probe_until=None)


def _opens(failures: Sequence[Failure]) -> bool:
    newest = failures[-AWAY_IN_A_ROW:]
    if len(newest) == AWAY_IN_A_ROW and all(failure.away for failure in newest):
        return True
    return len(failures) >= FAILED_IN_A_ROW and len({failure.ref for failure in failures}) >= OF_JOBS


def _probe_wait(probes: int, rng: Rng) -> timedelta:
    return retry_wait(probes + 1, base=PROBE_BASE, cap=PROBE_CAP, rng=rng)
