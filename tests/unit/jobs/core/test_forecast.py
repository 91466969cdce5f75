"""Where polls lie, by what jobs before have taken."""

from __future__ import annotations

import math
import random
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.forecast import MIN_SAMPLES, Forecast, Outlook, Schedule, forecast_of, schedule_of
from jobs.core.plan import plan_backoff

BASE, CAP = timedelta(seconds=1), timedelta(minutes=1)
DURATIONS = st.lists(st.floats(0.001, 1e6), min_size=MIN_SAMPLES, max_size=300)


def lognormal(median_s: float, sigma: float, *, count: int = 256) -> list[float]:
    dice = random.Random(3)
    return [dice.lognormvariate(math.log(median_s), sigma) for _ in range(count)]


def learned(samples_s: list[float]) -> Forecast:
    forecast = forecast_of(samples_s)
    assert forecast is not None
    return forecast


def polls_of(schedule: Schedule) -> list[float]:
    """The ages at which a job that never ends is polled, by the schedule alone."""
    ages, age_s = [], 0.0
    while (following := schedule.next_age_s(age_s, by=1.0)) is not None:
        ages.append(age_s := following)
    return ages


def planned(samples_s: list[float], *, needs_polls: bool = True) -> Schedule:
    schedule = schedule_of(Outlook(learned(samples_s), needs_polls), base=BASE, cap=CAP)
    assert schedule is not None
    return schedule


def test_too_few_ends_say_nothing() -> None:
    assert forecast_of([1.0] * (MIN_SAMPLES - 1)) is None
    assert schedule_of(Outlook(None), base=BASE, cap=CAP) is None


def test_the_edges_are_quantiles() -> None:
    forecast = learned([float(number) for number in range(1, 130)])

    assert forecast.edges_s == tuple(float(number) for number in range(1, 130))
    assert forecast.count == 129


def test_the_usual_duration_is_what_all_but_one_in_a_hundred_stay_within() -> None:
    forecast = learned([float(number) for number in range(1, 202)])

    assert forecast.usual == timedelta(seconds=199)


def test_no_poll_is_wasted_before_any_job_ends() -> None:
    """Jobs of ten minutes, give or take half a minute: backoff has asked a dozen times before the first ends."""
    polls = polls_of(planned([600 + number % 60 for number in range(256)]))

    assert polls[0] > 550


def test_the_polls_lie_where_the_ends_are() -> None:
    """Two kinds of end, at a minute and at ten: two polls for the eight minutes between."""
    samples = [60 + number % 10 for number in range(128)] + [600 + number % 60 for number in range(128)]

    polls = polls_of(planned(samples))

    between = [age for age in polls if 100 < age < 550]
    assert len(between) <= 2
    assert any(55 < age < 80 for age in polls)
    assert any(age >= 590 for age in polls)


@pytest.mark.parametrize("median_s", [30, 90, 300, 3000, 20000])
def test_a_job_takes_about_a_third_of_the_polls_of_backoff(median_s: float) -> None:
    samples = lognormal(median_s, 0.3)
    schedule = planned(samples)
    by_backoff = [plan_backoff(timedelta(seconds=age), base=0.75 * BASE, cap=0.75 * CAP).requests for age in samples]

    ages = polls_of(schedule)
    by_forecast = [1 + sum(age < sample for age in ages) for sample in samples]

    assert sum(by_forecast) <= max(sum(by_backoff) * 0.36, 2.2 * len(samples))


def test_under_webhooks_that_arrive_half_of_the_polls_do() -> None:
    samples = lognormal(3000, 0.3)

    few, many = (len(polls_of(planned(samples, needs_polls=needed))) for needed in (False, True))

    assert few < 0.6 * many


@given(DURATIONS)
def test_whatever_was_learned_the_effort_only_grows(samples_s: list[float]) -> None:
    schedule = planned(samples_s)

    assert all(before < after for before, after in zip(schedule.ages_s, schedule.ages_s[1:], strict=False))
    assert all(before < after for before, after in zip(schedule.effort, schedule.effort[1:], strict=False))
    assert len(polls_of(schedule)) < 5000 + max(samples_s)


@given(DURATIONS, st.floats(0, 2e6))
def test_the_next_poll_is_always_later(samples_s: list[float], age_s: float) -> None:
    following = planned(samples_s).next_age_s(age_s, by=0.8)

    assert following is None or following > age_s


def test_beyond_what_was_learned_there_is_no_plan() -> None:
    assert planned([90.0 + number / 10 for number in range(100)]).next_age_s(500.0, by=1.0) is None
