"""Leases and epochs: who has been succeeded never writes again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.leases import Lease, is_current, is_current_epoch, is_expired, is_newer_epoch, may_claim
from tests.vectors import NOW

SECOND = timedelta(seconds=1)
LEASE = Lease("t-1", until=NOW + 30 * SECOND)


def test_a_lease_ends_at_its_last_instant() -> None:
    assert not is_expired(LEASE, now=LEASE.until - timedelta(microseconds=1))
    assert is_expired(LEASE, now=LEASE.until)


def test_a_free_or_expired_row_may_be_claimed_and_a_held_one_not() -> None:
    assert may_claim(None, now=NOW)
    assert may_claim(LEASE, now=LEASE.until)
    assert not may_claim(LEASE, now=NOW)


def test_a_renewed_lease_lets_its_holder_write_beyond_its_first_end() -> None:
    renewed = replace(LEASE, until=NOW + 60 * SECOND)

    assert is_current(renewed, held=LEASE, now=NOW + 45 * SECOND)


@pytest.mark.parametrize(
    "row",
    [None, Lease("t-2", until=NOW + 60 * SECOND), Lease("t-1", until=NOW)],
    ids=["released", "claimed by another", "expired"],
)
def test_a_lost_lease_lets_nobody_write(row: Lease | None) -> None:
    assert not is_current(row, held=LEASE, now=NOW)


@dataclass
class Row:
    """A leased row as a database would keep it, with the rule under test as its only guard."""

    now: datetime = NOW
    lease: Lease | None = None
    tokens: int = 0
    held: dict[str, Lease] = field(default_factory=dict)
    history: list[tuple[str, int | str]] = field(default_factory=list)

    def claim(self, worker: str) -> None:
        if may_claim(self.lease, now=self.now):
            self.tokens += 1
            self.lease = self.held[worker] = Lease(self.tokens, until=self.now + 10 * SECOND)

    def renew(self, worker: str) -> None:
        held = self.held.get(worker)
        if held and is_current(self.lease, held=held, now=self.now):
            self.lease = replace(held, until=self.now + 10 * SECOND)

    def write(self, worker: str) -> bool:
        held = self.held.get(worker)
        return held is not None and is_current(self.lease, held=held, now=self.now)


steps = st.lists(
    st.tuples(st.sampled_from(["claim", "renew", "write"]), st.sampled_from("abc"), st.integers(0, 12)),
    max_size=40,
)


@pytest.mark.invariant("I7")
@given(steps)
def test_a_stale_lease_never_writes(steps: list[tuple[str, str, int]]) -> None:
    """Of all who ever claimed, only the last may write, and only until its end; whatever the pauses."""
    row = Row()
    for action, worker, pause_s in steps:
        row.now += pause_s * SECOND
        if action != "write":
            getattr(row, action)(worker)
        elif row.write(worker):
            assert row.lease is not None
            assert row.held[worker].token == row.tokens == row.lease.token
            assert row.now < row.lease.until
            assert [other for other in "abc" if row.write(other)] == [worker]


@pytest.mark.invariant("I7")
@given(st.lists(st.integers(1, 5), min_size=1), st.data())
def test_a_stale_epoch_never_writes(gaps: list[int], data: st.DataObject) -> None:
    """Epochs only grow; of all ever given out, only the newest passes."""
    given_out = [sum(gaps[: index + 1]) for index in range(len(gaps))]
    newest = given_out[-1]
    held = data.draw(st.sampled_from(given_out))

    assert is_current_epoch(held, newest=newest) == (held == newest)
    assert is_newer_epoch(newest, than=held) == (held != newest)


def test_any_epoch_is_newer_than_none() -> None:
    assert is_newer_epoch(1, than=None)
    assert is_current_epoch(1, newest=None)
    assert not is_newer_epoch(1, than=1)
