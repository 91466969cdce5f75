"""Polls a job costs and how late its end is noticed when every webhook is lost: learned durations against backoff.

Pure simulation: no database, no network, no clock but a number. The history is learned as the product learns it: only
from what polls found, each end placed somewhere since the read before. The first jobs are polled by backoff, because
nothing is known yet; they are not counted.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TypeAlias

from benchmarks.benchmark import Benchmark, Case, Figures, Target
from benchmarks.stage import Stage
from jobs.core.forecast import MAX_SAMPLES, NO_OUTLOOK, Outlook, forecast_of
from jobs.core.policy import Policy
from jobs.core.polls import next_poll_wait

Draw: TypeAlias = Callable[[random.Random], float]

_POLICY = Policy()  # 1 s, doubled up to 60 s; past all that is known at most 10 min
_WARMED_UP, _COUNTED = 400, 2_000
_LEARNED_EVERY = 25  # jobs: a sweep reads the history now and then
_SEED = 20
# Durations of seconds, minutes and hours; narrow, wide, in two kinds, and without any memory.
_DURATIONS: dict[str, Draw] = {
    "image 8 s ± 20 %": lambda dice: dice.lognormvariate(math.log(8), 0.2),
    "video 90 s ± 25 %": lambda dice: dice.lognormvariate(math.log(90), 0.25),
    "video 90 s ± 60 %": lambda dice: dice.lognormvariate(math.log(90), 0.6),
    "render 5 min ± 3 %": lambda dice: dice.gauss(300, 10),
    "30 s or 6 min": lambda dice: dice.gauss(30, 4) if dice.random() < 0.3 else dice.gauss(360, 40),
    "exponential, 2 min": lambda dice: dice.expovariate(1 / 120),
    "training 47 min ± 25 %": lambda dice: dice.lognormvariate(math.log(47 * 60), 0.25),
    "batch 6 h ± 50 %": lambda dice: dice.lognormvariate(math.log(6 * 3600), 0.5),
}


@dataclass(frozen=True, slots=True)
class _Cost:
    """What bringing one job home took: polls, and seconds from its end to our knowing."""

    polls: int
    delay_s: float
    sample_s: float


def _bring_home(duration_s: float, outlook: Outlook, dice: random.Random) -> _Cost:
    age_s, seen_open_s, polls = 0.0, 0.0, 0
    while age_s < duration_s or not polls:
        seen_open_s = age_s
        wait = next_poll_wait(outlook, _POLICY, number=polls, age=timedelta(seconds=age_s), rng=dice)
        age_s += wait.total_seconds()
        polls += 1
    return _Cost(polls, age_s - duration_s, age_s - dice.random() * (age_s - seen_open_s))


def _live(draw: Draw, *, learns: bool) -> tuple[Sequence[_Cost], float]:
    """Every job of one provider, one after another; the costs of those that count, and their mean duration."""
    dice, history = random.Random(_SEED), deque[float](maxlen=MAX_SAMPLES)
    outlook, costs, durations_s = NO_OUTLOOK, [], []
    for number in range(_WARMED_UP + _COUNTED):
        duration_s = max(draw(dice), 0.1)
        cost = _bring_home(duration_s, outlook, dice)
        history.append(cost.sample_s)
        if learns and number % _LEARNED_EVERY == 0:
            outlook = Outlook(forecast_of(tuple(history)), needs_polls=True)
        if number >= _WARMED_UP:
            costs.append(cost)
            durations_s.append(duration_s)
    return costs, sum(durations_s) / _COUNTED


def _measure(draw: Draw, *, learns: bool) -> Figures:
    costs, mean_s = _live(draw, learns=learns)
    delay_s = sum(cost.delay_s for cost in costs) / _COUNTED
    figures = {"polls": sum(cost.polls for cost in costs) / _COUNTED, "delay s": delay_s}
    if learns:
        by_backoff, _ = _live(draw, learns=False)
        backoff_s = sum(cost.delay_s for cost in by_backoff) / _COUNTED
        figures["added %"] = 100 * (delay_s - backoff_s) / mean_s
    return {**figures, "delay %": 100 * delay_s / mean_s}


@contextmanager
def setup(_stage: Stage) -> Iterator[Sequence[Case]]:
    """Two ways to poll for each kind of duration. Seeded: one repeat says all."""
    cases = []
    for name, draw in _DURATIONS.items():
        cases.append(Case(f"{name}, backoff", partial(_measure, draw, learns=False), repeats=1))
        cases.append(Case(f"{name}, learned", partial(_measure, draw, learns=True), f"{name}, backoff", repeats=1))
    yield cases


BENCHMARK = Benchmark(
    "polling",
    "polls per job and seconds until its end is noticed, every webhook lost",
    headline="polls",
    setup=setup,
    targets=(
        *(Target(f"{name}, learned", "polls", 0.34, f"{name}, backoff", sense="<=") for name in _DURATIONS),
        *(Target(f"{name}, learned", "added %", 5.0, sense="<=") for name in _DURATIONS),
    ),
)
