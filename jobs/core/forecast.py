"""How long jobs of one kind take, learned from those that have ended; and where polls are best placed in that time.

Where polls cost requests and waiting costs time, the best number of polls per second at an age grows with the square
root of the hazard there (the chance to end now, for a job that has not ended yet). So the *effort* spent up to an age
is the integral of that root, and each poll is placed where the effort has grown by one. Polls are rare while no job
ends and dense where most do, and scaling the effort sets how many there are.

Source: J. B. Keller, Optimum checking schedules for systems subject to random failure, Management Science 21 (1974).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from itertools import accumulate, pairwise

from jobs.core.plan import plan_backoff

#: Fewer ends say too little.
MIN_SAMPLES = 30
#: So many of the newest ends are kept: a provider that became faster or slower is believed within as many jobs.
MAX_SAMPLES = 256
_EDGES = 128
_EVERY = 8  # of the edges, to know what a backoff would do on average
# Samples as equal as these are still drawn a little apart: the next job may end beside them.
_MIN_WIDTH_SHARE = 0.0005
# One job in a hundred is overdue: of more alarms none would be read.
_USUAL_SHARE = 0.99
# Of the polls that backoff would make: a third, less what the bounds on a wait add. Half of that suffices where a
# poll is only the net under a webhook.
_SHARE_OF_BACKOFF, _SHARE_UNDER_WEBHOOKS = 0.3, 0.15
_FEWEST_POLLS, _FEWEST_UNDER_WEBHOOKS = 2.0, 1.5
# The last poll comes, on average, half an effort after the end.
_LAST_POLL = 0.5
_JITTERED = 0.75  # of its undithered wait, a jittered backoff waits


@dataclass(frozen=True, slots=True)
class Forecast:
    """A distribution of durations.

    Attributes:
        edges_s: Equal shares of the ends lie between neighbours; ascending, at least two, above 0.
        count: Ends it was learned from.
    """

    edges_s: tuple[float, ...]
    count: int

    @property
    def usual(self) -> timedelta:
        """What all but one job in a hundred stay within."""
        place = _USUAL_SHARE * (len(self.edges_s) - 1)
        low = int(place)
        share = place - low
        return timedelta(seconds=self.edges_s[low] * (1 - share) + self.edges_s[low + 1] * share)


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is to be expected of a job.

    Attributes:
        forecast: How long it takes; None where too few have ended.
        needs_polls: Whether polls have to bring it home: its provider's webhooks get lost, or there are none.
    """

    forecast: Forecast | None = None
    needs_polls: bool = False


NO_OUTLOOK = Outlook()


def forecast_of(samples_s: Sequence[float]) -> Forecast | None:
    """The distribution behind some durations in seconds; None where they are too few."""
    if len(samples_s) < MIN_SAMPLES:
        return None
    ordered = sorted(max(sample, 0.001) for sample in samples_s)
    last = len(ordered) - 1
    return Forecast(tuple(_between(ordered, last * edge / _EDGES) for edge in range(_EDGES + 1)), len(ordered))


def _between(ordered: Sequence[float], place: float) -> float:
    low = min(int(place), len(ordered) - 2)
    share = place - low
    return ordered[low] * (1 - share) + ordered[low + 1] * share


@dataclass(frozen=True, slots=True)
class Schedule:
    """Where the polls of one kind of job lie: the effort spent by each age, in polls.

    Attributes:
        ages_s: From 0, ascending.
        effort: By those ages.
    """

    ages_s: tuple[float, ...]
    effort: tuple[float, ...]

    def next_age_s(self, age_s: float, *, by: float) -> float | None:
        """The age at which the effort has grown by so much; None where it never will."""
        wanted = _read(self.ages_s, self.effort, age_s) + by
        if age_s >= self.ages_s[-1] or wanted > self.effort[-1]:
            return None
        return _read(self.effort, self.ages_s, wanted)


@lru_cache(maxsize=1024)
def schedule_of(outlook: Outlook, *, base: timedelta, cap: timedelta) -> Schedule | None:
    """Where the polls lie that take the place of a backoff; None where nothing was learned."""
    forecast = outlook.forecast
    if forecast is None:
        return None
    ages_s = _smooth((0.0, *forecast.edges_s))
    shares = _shares(forecast)
    left = [1 - before - share / 2 for before, share in zip(accumulate((0.0, *shares[:-1])), shares, strict=True)]
    widths = [after - before for before, after in pairwise(ages_s)]
    efforts = [(width * share / rest) ** 0.5 for width, share, rest in zip(widths, shares, left, strict=True)]
    per_job = sum(effort * rest for effort, rest in zip(efforts, left, strict=True))
    scale = (_polls_wanted(outlook, forecast, base=base, cap=cap) - _LAST_POLL) / per_job
    return Schedule(tuple(ages_s), tuple(accumulate((scale * effort for effort in efforts), initial=0.0)))


def _smooth(ages_s: Sequence[float]) -> list[float]:
    least = ages_s[len(ages_s) // 2] * _MIN_WIDTH_SHARE
    smoothed = [0.0]
    for age_s in ages_s[1:]:
        smoothed.append(max(age_s, smoothed[-1] + least))
    return smoothed


def _shares(forecast: Forecast) -> list[float]:
    """The share of ends between each two ages: a little before the first that was seen, the like after the last."""
    outside = 1 / (2 * forecast.count)
    inside = (1 - 2 * outside) / _EDGES
    return [outside, *[inside] * _EDGES]


def _polls_wanted(outlook: Outlook, forecast: Forecast, *, base: timedelta, cap: timedelta) -> float:
    by_backoff = [
        plan_backoff(timedelta(seconds=age_s), base=base * _JITTERED, cap=cap * _JITTERED).requests
        for age_s in forecast.edges_s[::_EVERY]
    ]
    usual = sum(by_backoff) / len(by_backoff)
    if outlook.needs_polls:
        return max(usual * _SHARE_OF_BACKOFF, _FEWEST_POLLS)
    return max(usual * _SHARE_UNDER_WEBHOOKS, _FEWEST_UNDER_WEBHOOKS)


def _read(xs: Sequence[float], ys: Sequence[float], x: float) -> float:
    """A curve through points, read at a place; flat beyond its ends."""
    if x >= xs[-1]:
        return ys[-1]
    right = bisect_right(xs, x)
    left = right - 1
    return ys[left] + (x - xs[left]) / (xs[right] - xs[left]) * (ys[right] - ys[left])
