"""The breaker's machine: when it opens, that one probe at a time goes, that any answer closes it."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from jobs.core.breaker import (
    AWAY_IN_A_ROW,
    CLOSED,
    FAILED_IN_A_ROW,
    MEMORY,
    OF_JOBS,
    PROBE_BASE,
    PROBE_CAP,
    Breaker,
    Mode,
    Seen,
    begin_probe,
    observe,
)
from tests.factories import T

LEASE = timedelta(seconds=30)
SECOND = timedelta(seconds=1)


def after(*calls: tuple[str, Seen], breaker: Breaker = CLOSED, every: timedelta = SECOND) -> Breaker:
    """The breaker after some calls, one after another."""
    rng = random.Random(3)
    for number, (ref, seen) in enumerate(calls):
        breaker = observe(breaker, seen, ref=ref, now=T + number * every, rng=rng)
    return breaker


def opened() -> Breaker:
    return after(*[("a", Seen.AWAY)] * AWAY_IN_A_ROW, every=timedelta(0))


def test_nobody_there_so_many_times_in_a_row_opens_it_whoever_called() -> None:
    calls = [("a", Seen.AWAY)] * AWAY_IN_A_ROW

    assert after(*calls[:-1]).mode(T) is Mode.CLOSED
    assert after(*calls).mode(T + timedelta(hours=9)) is Mode.OPEN


def test_failures_of_several_jobs_open_it() -> None:
    calls = [(ref, Seen.FAILED) for ref in "abcabcab"]

    assert len(calls) == FAILED_IN_A_ROW
    assert after(*calls[:-1]).opened_at is None
    assert after(*calls).opened_at is not None


def test_one_jobs_own_trouble_does_not_open_it() -> None:
    assert after(*[("a", Seen.FAILED)] * 100).opened_at is None
    assert after(*[(ref, Seen.FAILED) for ref in "ab" * 50]).opened_at is None


def test_an_answer_in_between_is_an_answer() -> None:
    calls = [(ref, Seen.FAILED) for ref in "abcdefg"]

    assert after(*calls, ("z", Seen.ANSWERED), *calls).opened_at is None
    assert after(*calls, ("z", Seen.ANSWERED)) == CLOSED


def test_old_failures_say_nothing() -> None:
    assert after(*[("a", Seen.AWAY)] * 20, every=MEMORY / (AWAY_IN_A_ROW - 1)).opened_at is None


def test_our_own_trouble_says_nothing() -> None:
    assert after(*[(ref, Seen.UNCLEAR) for ref in "abcabcabc"]) == CLOSED


def test_an_answer_closes_it_whoever_got_it() -> None:
    probing = begin_probe(opened(), "b", now=T + PROBE_CAP, lease=LEASE)

    assert after(("late", Seen.ANSWERED), breaker=opened()) == CLOSED
    assert after(("b", Seen.ANSWERED), breaker=probing) == CLOSED


def test_calls_that_were_under_way_when_it_opened_change_nothing() -> None:
    assert after(("x", Seen.FAILED), ("y", Seen.AWAY), breaker=opened()) == opened()


def test_only_the_probe_goes_and_only_while_it_is_under_way() -> None:
    at = T + PROBE_CAP
    probing = begin_probe(opened(), "b", now=at, lease=LEASE)

    assert probing.mode(at) is Mode.HALF_OPEN
    assert probing.lets_through("b", now=at)
    assert not probing.lets_through("a", now=at)
    assert not probing.lets_through("b", now=at + LEASE)
    assert not opened().lets_through("a", now=at)
    assert CLOSED.lets_through("a", now=at)


def test_a_probe_whose_worker_died_gives_way_to_another() -> None:
    probing = begin_probe(opened(), "b", now=T + PROBE_CAP, lease=LEASE)
    with pytest.raises(ValueError, match="no probe is due"):
        begin_probe(probing, "c", now=T + PROBE_CAP + SECOND, lease=LEASE)

    second = begin_probe(probing, "c", now=T + PROBE_CAP + LEASE, lease=LEASE)

    assert (second.probe, second.probes) == ("c", 2)
    assert observe(second, Seen.FAILED, ref="b", now=T + PROBE_CAP + LEASE, rng=random.Random(1)) == second


@given(st.integers(0, 200), st.integers())
def test_waits_before_probes_grow_and_stay_in_their_bounds(probes: int, seed: int) -> None:
    breaker = Breaker(opened_at=T, next_probe_at=T, probes=probes)
    probing = begin_probe(breaker, "b", now=T, lease=LEASE)

    failed = observe(probing, Seen.FAILED, ref="b", now=T, rng=random.Random(seed))

    assert failed.next_probe_at is not None
    longest = min(PROBE_BASE * 2 ** min(probes + 1, 20), PROBE_CAP)
    assert longest / 2 <= failed.next_probe_at - T <= longest


class Machine(RuleBasedStateMachine):
    """Any number of workers that call, die and come late, under a clock that only goes forward."""

    def __init__(self) -> None:
        super().__init__()
        self.breaker = CLOSED
        self.now: datetime = T
        self.rng = random.Random(5)
        self.under_way: dict[str, datetime] = {}  # probes that may still be at it, by when they must have ended
        self.number = 0

    @rule(seconds=st.floats(0.001, 120))
    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.under_way = {ref: until for ref, until in self.under_way.items() if until > self.now}

    @rule(ref=st.sampled_from("abcd"), seen=st.sampled_from([Seen.FAILED, Seen.AWAY, Seen.UNCLEAR]))
    def fail(self, ref: str, seen: Seen) -> None:
        """A call ends badly: begun before it opened, or let through."""
        self.breaker = observe(self.breaker, seen, ref=ref, now=self.now, rng=self.rng)

    @rule()
    def answer(self) -> None:
        self.breaker = observe(self.breaker, Seen.ANSWERED, ref="a", now=self.now, rng=self.rng)
        assert self.breaker.mode(self.now) is Mode.CLOSED
        self.under_way.clear()

    @precondition(lambda self: self.breaker.is_probe_due(self.now))
    @rule()
    def probe(self) -> None:
        self.number += 1
        ref = f"probe {self.number}"
        self.breaker = begin_probe(self.breaker, ref, now=self.now, lease=LEASE)
        self.under_way[ref] = self.now + LEASE

    @precondition(lambda self: self.under_way)
    @rule(seen=st.sampled_from([Seen.FAILED, Seen.AWAY, Seen.UNCLEAR]))
    def probe_fails(self, seen: Seen) -> None:
        ref = next(iter(self.under_way))
        del self.under_way[ref]
        self.breaker = observe(self.breaker, seen, ref=ref, now=self.now, rng=self.rng)

    @invariant()
    def one_probe_at_a_time(self) -> None:
        assert len(self.under_way) <= 1

    @invariant()
    def a_probe_always_follows(self) -> None:
        """Never wedged: within the longest wait and a dead worker's lease somebody may try."""
        if self.breaker.opened_at is not None:
            assert self.breaker.is_probe_due(self.now + PROBE_CAP + LEASE)

    @invariant()
    def it_is_open_with_a_reason(self) -> None:
        if self.breaker.opened_at is not None:
            refs = {failure.ref for failure in self.breaker.failures}
            away = all(failure.away for failure in self.breaker.failures[-AWAY_IN_A_ROW:])
            assert away or len(refs) >= OF_JOBS


TestMachine = Machine.TestCase
