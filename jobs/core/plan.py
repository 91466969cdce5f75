"""What a way of waiting costs, before a job is sent: requests, wasted requests, and how late we learn.

Every strategy waits first and asks then. A request is wasted when it finds the job still running. Jitter is
left out: it moves the numbers by chance, not on average by much.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import count, islice

from jobs.core.backoff import undithered
from jobs.core.durations import format_duration

_ZERO = timedelta(0)


@dataclass(frozen=True, slots=True)
class Plan:
    """The cost of waiting for one job.

    Attributes:
        strategy: how it waits, in words.
        requests: requests after the submit, the one that brings the result included.
        wasted: those that found the job still running.
        delay: from the job's end to our knowing, if it takes exactly the duration asked about.
        worst_delay: the longest such delay, for a job that ends anywhere in the same wait.
        mean_delay: the average of those.
    """

    strategy: str
    requests: int
    wasted: int
    delay: timedelta
    worst_delay: timedelta
    mean_delay: timedelta

    @property
    def requests_with_submit(self) -> int:
        """All requests the job costs."""
        return self.requests + 1

    @property
    def useful(self) -> int:
        """The requests that were worth it: the submit, and the one that brought the result."""
        return self.requests_with_submit - self.wasted

    @property
    def waste_percent(self) -> float:
        """The share of all requests, submit included, that was wasted."""
        return 100 * self.wasted / self.requests_with_submit


def plan_interval(duration: timedelta, *, every: timedelta) -> Plan:
    """Return the cost of asking at a fixed interval.

    Raises:
        ValueError: duration or interval is not longer than 0.
    """
    _check(duration, every)
    requests = _ceil_div(duration, every)
    return _polled(f"every {format_duration(every)}", requests, requests * every - duration, every)


def plan_backoff(duration: timedelta, *, base: timedelta, cap: timedelta) -> Plan:
    """Return the cost of asking after waits that double from base up to cap.

    Raises:
        ValueError: duration, base or cap is not longer than 0.
    """
    _check(duration, base, cap)
    requests, elapsed, wait = 0, _ZERO, _ZERO
    while elapsed < duration and wait < cap:
        wait = undithered(requests, base=base, cap=cap)
        requests, elapsed = requests + 1, elapsed + wait
    if elapsed < duration:  # all further waits are the cap: no need to walk them
        capped = _ceil_div(duration - elapsed, cap)
        requests, elapsed = requests + capped, elapsed + capped * cap
    name = f"backoff {format_duration(base)} to {format_duration(cap)}"
    return _polled(name, requests, elapsed - duration, wait)


def plan_webhook(duration: timedelta) -> Plan:
    """Return the cost of being told: one incoming request, whatever the job takes.

    Raises:
        ValueError: duration is not longer than 0.
    """
    _check(duration)
    return Plan("webhook", requests=1, wasted=0, delay=_ZERO, worst_delay=_ZERO, mean_delay=_ZERO)


def first_waits(number: int, *, base: timedelta, cap: timedelta) -> list[timedelta]:
    """Return the first waits of a backoff."""
    return list(islice(_waits(base, cap), number))


def _waits(base: timedelta, cap: timedelta) -> Iterator[timedelta]:
    return (undithered(n, base=base, cap=cap) for n in count())


def _polled(strategy: str, requests: int, delay: timedelta, last_wait: timedelta) -> Plan:
    return Plan(
        strategy,
        requests=requests,
        wasted=requests - 1,
        delay=delay,
        worst_delay=last_wait,
        mean_delay=last_wait / 2,
    )


def _ceil_div(whole: timedelta, part: timedelta) -> int:
    return -(-whole // part)


def _check(*durations: timedelta) -> None:
    if any(duration <= _ZERO for duration in durations):
        raise ValueError("durations in a plan are longer than 0")
