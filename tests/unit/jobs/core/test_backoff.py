"""Waits: their range, their spread at the cap, and what others ask us to wait."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.backoff import parse_retry_after, poll_wait, retry_wait, undithered
from tests.vectors import NOW

SECOND = timedelta(seconds=1)
DEFAULT = timedelta(seconds=7)
MAXIMUM = timedelta(seconds=600)

waits = st.timedeltas(timedelta(microseconds=1), timedelta.max)
counts = st.one_of(st.integers(0, 80), st.integers(0, 10**30))


def test_an_undithered_wait_doubles_up_to_the_cap() -> None:
    seconds = [undithered(n, base=SECOND, cap=60 * SECOND) // SECOND for n in range(8)]

    assert seconds == [1, 2, 4, 8, 16, 32, 60, 60]


@pytest.mark.invariant("I8")
@given(counts, waits, waits, st.integers())
def test_a_wait_stays_in_its_range_and_is_never_zero(n: int, base: timedelta, cap: timedelta, seed: int) -> None:
    longest = undithered(n, base=base, cap=cap)

    wait = poll_wait(n, base=base, cap=cap, rng=random.Random(seed))

    assert timedelta(0) < wait
    assert longest / 2 <= wait + timedelta(microseconds=1)
    assert wait <= longest <= cap


@pytest.mark.invariant("I8")
@given(counts, waits, waits)
def test_an_undithered_wait_never_shrinks(n: int, base: timedelta, cap: timedelta) -> None:
    assert undithered(n, base=base, cap=cap) <= undithered(n + 1, base=base, cap=cap)
    assert undithered(0, base=base, cap=cap) == min(base, cap)


@pytest.mark.invariant("I8")
@given(st.integers(10, 10**9), st.integers())
def test_jitter_keeps_its_spread_at_the_cap(n: int, seed: int) -> None:
    rng, cap = random.Random(seed), 60 * SECOND

    drawn = [poll_wait(n, base=SECOND, cap=cap, rng=rng) for _ in range(200)]

    assert len(set(drawn)) > 150
    assert min(drawn) < cap * 0.6
    assert max(drawn) > cap * 0.9


class Edge:
    """A generator that always draws the same end of the range."""

    def __init__(self, *, high: bool) -> None:
        self.high = high

    def uniform(self, a: float, b: float, /) -> float:
        return b if self.high else a


@pytest.mark.parametrize(("high", "seconds"), [(False, 4), (True, 8)])
def test_the_ends_of_the_range_are_half_and_whole(high: bool, seconds: int) -> None:
    assert poll_wait(3, base=SECOND, cap=60 * SECOND, rng=Edge(high=high)) == seconds * SECOND


def test_the_shortest_wait_there_is_does_not_round_to_zero() -> None:
    microsecond = timedelta(microseconds=1)

    assert poll_wait(0, base=microsecond, cap=SECOND, rng=Edge(high=False)) == microsecond


def test_the_longest_cap_there_is_is_reached_from_the_shortest_base() -> None:
    assert undithered(10**30, base=timedelta(microseconds=1), cap=timedelta.max) == timedelta.max


def test_the_first_retry_waits_as_the_first_poll_does() -> None:
    waited = [retry_wait(tries, base=SECOND, cap=60 * SECOND, rng=Edge(high=True)) for tries in (1, 2, 3)]

    assert waited == [SECOND, 2 * SECOND, 4 * SECOND]


@pytest.mark.parametrize(("n", "base", "cap"), [(-1, SECOND, SECOND), (0, timedelta(0), SECOND), (0, SECOND, -SECOND)])
def test_a_backoff_that_could_not_wait_is_refused(n: int, base: timedelta, cap: timedelta) -> None:
    with pytest.raises(ValueError, match="backoff needs"):
        undithered(n, base=base, cap=cap)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("30", 30),
        (" 30 ", 30),
        ("120.5", 121),
        ("30.0", 30),
        ("0.4", 1),
        ("-5", 7),
        ("0", 7),
        ("0.0", 7),
        ("Thu, 01 Jan 2026 00:01:30 GMT", 90),
        ("Thu, 01 Jan 2026 00:01:30 -0000", 90),
        ("Thursday, 01-Jan-26 00:01:30 GMT", 90),
        ("Thu Jan  1 00:01:30 2026", 90),
        ("Thu, 01 Jan 2026 02:01:30 +0200", 90),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 7),
        ("Wed, 21 Oct 2015 07:28:00 -0000", 7),
        ("Fri, 31 Dec 10000 23:59:59 GMT", 7),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 600),
        ("99999999", 600),
        ("0000000000000000000000030", 30),
        ("9" * 5000, 600),
        ("0" * 5000, 7),
        ("9" * 5000 + ".9", 600),
        ("inf", 7),
        ("nan", 7),
        ("1e3", 7),
        ("+30", 7),
        ("3_0", 7),
        ("0x1e", 7),
        ("\u0663\u0660", 7),
        ("30, 60", 7),
        ("soon", 7),
        ("", 7),
        (None, 7),
        ("x" * 8192, 7),
    ],
)
def test_retry_after_in_all_its_forms(value: str | None, seconds: int) -> None:
    """F27: the same for 429 and 503; never an exception, never sooner than asked, never beyond the maximum."""
    waited = parse_retry_after(value, now=NOW, default=DEFAULT, maximum=MAXIMUM)

    assert waited == seconds * SECOND


def test_a_date_is_rounded_up_to_the_next_second() -> None:
    """F27: never sooner than asked."""
    just_after = NOW + timedelta(milliseconds=1)

    waited = parse_retry_after("Thu, 01 Jan 2026 00:01:30 GMT", now=just_after, default=DEFAULT, maximum=MAXIMUM)

    assert waited == 90 * SECOND


def test_a_date_without_a_zone_is_utc_wherever_we_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """F27: -0000 and the oldest date form come back from the parser without a zone."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        waited = parse_retry_after("Thu Jan  1 00:01:30 2026", now=NOW, default=DEFAULT, maximum=MAXIMUM)
    finally:
        monkeypatch.undo()
        time.tzset()

    assert waited == 90 * SECOND


def test_the_default_is_capped_too() -> None:
    assert parse_retry_after(None, now=NOW, default=2 * MAXIMUM, maximum=MAXIMUM) == MAXIMUM


@given(st.one_of(st.text(max_size=80), st.text("0123456789.-+eE:, GMTJanThu", max_size=40)))
def test_any_text_gives_a_wait_within_bounds(value: str) -> None:
    """F27."""
    waited = parse_retry_after(value, now=NOW, default=DEFAULT, maximum=MAXIMUM)

    assert timedelta(0) < waited <= MAXIMUM


@given(st.integers(1, 599), st.integers(0, 999_999))
def test_a_date_ahead_is_waited_for(seconds: int, microseconds: int) -> None:
    at = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
    now = at - timedelta(seconds=seconds) + timedelta(microseconds=microseconds)

    waited = parse_retry_after(format_datetime(at, usegmt=True), now=now, default=DEFAULT, maximum=MAXIMUM)

    assert at <= now + waited < at + SECOND
