"""When to try again, and when to give up."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from tests.factories import T
from webhooks.outgoing.retrying import (
    DISABLE_AFTER,
    MAX_RETRY_AFTER,
    MAX_TRIES,
    WAITS,
    failing_since,
    is_given_up,
    next_wait,
    wait_after,
)

RNG = random.Random(7)
HOUR = timedelta(hours=1)


@pytest.mark.parametrize("tries", range(1, MAX_TRIES))
def test_each_wait_is_that_of_the_table_give_or_take_a_fifth(tries: int) -> None:
    waits = [wait_after(tries, RNG) for _ in range(200)]

    table = WAITS[tries - 1]
    assert min(waits) >= 0.8 * table
    assert max(waits) <= 1.2 * table
    assert max(waits) - min(waits) > 0.3 * table


def test_all_tries_end_before_an_endpoint_is_given_up() -> None:
    assert sum(WAITS, timedelta()) * 1.2 < DISABLE_AFTER


@pytest.mark.parametrize(
    ("asked", "least", "most"),
    [
        (None, 4, 6),
        ("1", 4, 6),
        ("soon", 4, 6),
        ("120", 120, 120),
        ("Thu, 01 Jan 2026 01:00:00 GMT", 3600, 3600),
        ("99999999", MAX_RETRY_AFTER.total_seconds(), MAX_RETRY_AFTER.total_seconds()),
    ],
)
def test_the_receiver_may_ask_for_longer_and_not_for_sooner(asked: str | None, least: float, most: float) -> None:
    wait = next_wait(1, asked, now=T, rng=RNG)

    assert least <= wait.total_seconds() <= most


def test_an_outage_begins_with_its_first_failure_and_ends_with_two_quiet_days() -> None:
    assert failing_since(None, None, now=T) == T
    assert failing_since(T, T + 28 * HOUR, now=T + 57 * HOUR) == T
    assert failing_since(T, T, now=T + 49 * HOUR) == T + 49 * HOUR


def test_five_days_are_enough() -> None:
    assert not is_given_up(T, now=T + DISABLE_AFTER - HOUR)
    assert is_given_up(T, now=T + DISABLE_AFTER)
