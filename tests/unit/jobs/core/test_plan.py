"""What waiting costs; the worked numbers a user may check by hand."""

from __future__ import annotations

from datetime import timedelta
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.plan import first_waits, plan_backoff, plan_interval, plan_webhook

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)

durations = st.timedeltas(timedelta(milliseconds=1), timedelta(hours=1))
waits = st.timedeltas(timedelta(seconds=1), timedelta(hours=2))


def test_two_hours_polled_every_minute() -> None:
    plan = plan_interval(2 * HOUR, every=MINUTE)

    assert (plan.requests, plan.wasted) == (120, 119)
    assert (plan.requests_with_submit, plan.useful) == (121, 2)
    assert round(plan.waste_percent, 1) == 98.3


def test_two_hours_with_a_webhook() -> None:
    plan = plan_webhook(2 * HOUR)

    assert (plan.requests_with_submit, plan.useful, plan.wasted) == (2, 2, 0)
    assert (plan.waste_percent, plan.worst_delay) == (0, timedelta(0))


def test_a_backoff_waits_first_and_doubles_up_to_its_cap() -> None:
    waited = [wait // SECOND for wait in first_waits(8, base=SECOND, cap=MINUTE)]

    assert waited == [1, 2, 4, 8, 16, 32, 60, 60]
    assert list(accumulate(waited)) == [1, 3, 7, 15, 31, 63, 123, 183]


def test_forty_seven_minutes_at_a_fixed_interval_against_a_backoff() -> None:
    fixed = plan_interval(47 * MINUTE, every=30 * SECOND)
    backoff = plan_backoff(47 * MINUTE, base=2 * SECOND, cap=120 * SECOND)

    assert (fixed.requests, fixed.wasted) == (94, 93)
    assert (backoff.requests, backoff.wasted) == (29, 28)
    assert (backoff.delay, backoff.worst_delay, backoff.mean_delay) == (66 * SECOND, 2 * MINUTE, MINUTE)
    assert (fixed.strategy, backoff.strategy) == ("every 30s", "backoff 2s to 2m")


@given(durations, waits, waits)
def test_a_backoff_counts_what_walking_through_it_counts(duration: timedelta, base: timedelta, cap: timedelta) -> None:
    waited = first_waits(int(duration / min(base, cap)) + 2, base=base, cap=cap)
    ends = list(accumulate(waited))
    polls = next(number for number, end in enumerate(ends, start=1) if end >= duration)

    plan = plan_backoff(duration, base=base, cap=cap)

    assert (plan.requests, plan.wasted) == (polls, polls - 1)
    assert plan.delay == ends[polls - 1] - duration
    assert plan.worst_delay == waited[polls - 1] > plan.delay


@given(durations, waits)
def test_the_result_is_learned_within_one_interval(duration: timedelta, every: timedelta) -> None:
    plan = plan_interval(duration, every=every)

    assert timedelta(0) <= plan.delay < plan.worst_delay == every
    assert plan.requests * every == duration + plan.delay
    assert plan.useful == 2


def test_a_plan_for_a_year_is_made_at_once() -> None:
    plan = plan_backoff(timedelta(days=365), base=timedelta(milliseconds=1), cap=timedelta(milliseconds=2))

    assert plan.requests > 10**10


@pytest.mark.parametrize("duration", [timedelta(0), -SECOND])
def test_a_plan_for_no_time_is_refused(duration: timedelta) -> None:
    with pytest.raises(ValueError, match="longer than 0"):
        plan_webhook(duration)
    for asked, wait in ((duration, SECOND), (SECOND, duration)):
        with pytest.raises(ValueError, match="longer than 0"):
            plan_interval(asked, every=wait)
        with pytest.raises(ValueError, match="longer than 0"):
            plan_backoff(asked, base=SECOND, cap=wait)
