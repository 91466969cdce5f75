"""The breaker, on a clock that stands still until told to move."""

from __future__ import annotations

import pytest

from homing.breaker import Breaker
from jobs.clock import FakeClock


@pytest.fixture
def breaker(clock: FakeClock) -> Breaker:
    return Breaker(failures=2, open_s=5.0, monotonic=clock.monotonic)


def test_it_is_closed_until_enough_failures_follow_each_other(breaker: Breaker) -> None:
    assert not breaker.failed()
    breaker.succeeded()
    assert not breaker.failed()
    assert breaker.allows()
    assert breaker.failed()
    assert not breaker.allows()


def test_after_its_time_one_may_probe(breaker: Breaker, clock: FakeClock) -> None:
    breaker.failed()
    breaker.failed()
    clock.advance(4.999)
    assert not breaker.allows()
    clock.advance(0.001)

    assert [breaker.allows() for _ in range(4)] == [True, False, False, False]


def test_a_probe_that_works_closes_it(breaker: Breaker, clock: FakeClock) -> None:
    breaker.failed()
    breaker.failed()
    clock.advance(5)
    breaker.allows()
    breaker.succeeded()

    assert [breaker.allows() for _ in range(3)] == [True, True, True]


def test_a_probe_that_fails_keeps_it_open_for_another_span(breaker: Breaker, clock: FakeClock) -> None:
    breaker.failed()
    breaker.failed()
    clock.advance(5)
    assert breaker.allows()
    assert not breaker.failed(), "it was open already: nothing new to say"
    clock.advance(4)
    assert not breaker.allows()
    clock.advance(1)
    assert breaker.allows()
