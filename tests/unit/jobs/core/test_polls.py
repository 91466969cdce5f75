"""When to read a status next."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.forecast import NO_OUTLOOK, Outlook, forecast_of
from jobs.core.policy import Policy
from jobs.core.polls import next_poll_wait

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
POLICY = Policy()
TEN_MINUTES = Outlook(forecast_of([570.0 + number % 60 for number in range(200)]), needs_polls=True)
DEGRADED = Outlook(None, needs_polls=True)


def wait(outlook: Outlook = NO_OUTLOOK, policy: Policy = POLICY, **about: object) -> timedelta:
    return next_poll_wait(outlook, policy, rng=random.Random(5), **{"number": 0, "age": 0 * SECOND, **about})  # type: ignore[arg-type]


@pytest.mark.parametrize(("number", "longest"), [(0, 1), (3, 8), (20, 60)])
def test_without_a_forecast_the_backoff_of_the_entry_holds(number: int, longest: int) -> None:
    assert longest * SECOND / 2 <= wait(number=number) <= longest * SECOND


def test_past_what_was_expected_the_backoff_slows_down() -> None:
    assert wait(number=30, is_late=True) > 5 * MINUTE


def test_while_webhooks_get_lost_the_backoff_is_twice_as_close() -> None:
    assert wait(DEGRADED, number=30) <= 30 * SECOND
    assert wait(DEGRADED, number=30, is_late=True) <= 5 * MINUTE
    assert wait(DEGRADED, number=0) <= SECOND


def test_a_cap_of_the_base_is_not_halved_below_it() -> None:
    policy = Policy(poll_base=10 * SECOND, poll_cap=10 * SECOND)

    assert wait(DEGRADED, policy, number=9) >= 5 * SECOND


def test_a_forecast_waits_until_jobs_tend_to_end() -> None:
    assert wait(TEN_MINUTES) > 8 * MINUTE


def test_no_wait_is_longer_than_the_cap_of_what_is_overdue() -> None:
    """A provider that has become faster than its history is noticed."""
    policy = Policy(overdue_cap=2 * MINUTE)

    assert wait(TEN_MINUTES, policy) == 2 * MINUTE


def test_what_somebody_said_counts_more_than_what_was_learned() -> None:
    assert wait(TEN_MINUTES, number=0, is_late=True) <= SECOND


def test_beyond_the_longest_that_was_learned_the_waits_grow_with_the_age() -> None:
    waits = [wait(TEN_MINUTES, age=age * MINUTE) for age in (12, 24, 48)]

    assert waits == sorted(waits)
    assert all(
        age * MINUTE / 8 * 0.8 <= one <= age * MINUTE / 8 * 1.2 for age, one in zip((12, 24, 48), waits, strict=True)
    )


@pytest.mark.invariant("I8")
@given(
    st.lists(st.floats(0.001, 1e6), min_size=30, max_size=60),
    st.floats(-10, 1e7),
    st.floats(0.001, 1e4),
    st.floats(0.001, 1e4),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_every_wait_stays_within_what_was_configured(
    samples_s: list[float], age_s: float, base_s: float, cap_s: float, needs: bool, dice: random.Random
) -> None:
    policy = Policy(poll_base=timedelta(seconds=base_s), poll_cap=timedelta(seconds=max(base_s, cap_s)))
    outlook = Outlook(forecast_of(samples_s), needs)

    one = next_poll_wait(outlook, policy, number=1, age=timedelta(seconds=age_s), rng=dice)

    assert policy.poll_base <= one <= max(policy.overdue_cap, policy.poll_cap)
