"""The lock of a sweep, on a clock that stands still until told to move."""

from __future__ import annotations

from datetime import timedelta

import pytest
from redis import Redis
from structlog.testing import capture_logs

from homing.redis_urls import connect
from jobs.clock import FakeClock
from reconciler.lock import RedisLockStore, StoreAway, SweepLock
from tests.fakes.locks import MemoryLockStore

FIVE_S = timedelta(seconds=5)


def a_lock(store: MemoryLockStore, *, ttl: timedelta = FIVE_S) -> SweepLock:
    return SweepLock(store, "due", ttl)


def test_a_lock_that_ran_out_is_not_freed_by_its_old_owner(clock: FakeClock) -> None:
    """F52: TTL 5 s, A works 8 s, B takes the lock at 6 s, A releases at 8 s, C tries at 9 s and is refused."""
    store = MemoryLockStore(clock)
    a, b, c = a_lock(store), a_lock(store), a_lock(store)
    assert a.acquire()
    clock.advance(6)
    assert b.acquire()
    clock.advance(2)

    with capture_logs() as logs:
        released = a.release()
    clock.advance(1)

    assert not released
    assert [log["event"] for log in logs] == ["lock lost"]
    assert not c.acquire()
    assert b.release()
    assert c.acquire()


def test_a_renewed_lock_lasts_as_long_as_its_owner_works(clock: FakeClock) -> None:
    store = MemoryLockStore(clock)
    a, b = a_lock(store), a_lock(store)
    a.acquire()

    for _ in range(20):
        clock.advance(4)
        assert a.renew()
        assert not b.acquire()

    assert a.release()


def test_an_owner_that_stalled_learns_at_its_next_renewal(clock: FakeClock) -> None:
    store = MemoryLockStore(clock)
    a, b = a_lock(store), a_lock(store)
    a.acquire()
    clock.advance(FIVE_S)
    b.acquire()

    with capture_logs() as logs:
        assert not a.renew()
        assert not a.renew()
        assert not a.release()

    assert [log["event"] for log in logs] == ["lock lost"]
    assert b.renew()


def test_where_the_store_is_away_the_sweep_runs_unlocked(clock: FakeClock) -> None:
    store = MemoryLockStore(clock)
    store.away = True
    lock = a_lock(store)

    assert lock.acquire()
    assert lock.renew()
    assert not lock.release()


def test_a_store_that_goes_away_meanwhile_stops_nobody(clock: FakeClock) -> None:
    store = MemoryLockStore(clock)
    lock = a_lock(store)
    lock.acquire()
    store.away = True

    assert lock.renew()
    assert not lock.release()


@pytest.mark.parametrize("ttl", [timedelta(0), timedelta(seconds=-1), timedelta(microseconds=999)])
def test_a_lock_of_no_length_is_refused(ttl: timedelta, clock: FakeClock) -> None:
    """F53: a lock time read as 0 excludes nobody, and must not go unnoticed."""
    with pytest.raises(ValueError, match="would exclude nobody"):
        a_lock(MemoryLockStore(clock), ttl=ttl)


def test_every_owner_has_a_token_of_its_own(clock: FakeClock) -> None:
    store = MemoryLockStore(clock)

    assert len({a_lock(store).owner for _ in range(100)}) == 100


@pytest.fixture
def refused() -> Redis:
    return connect("redis://127.0.0.1:1/0")


def test_a_redis_that_refuses_is_away_and_not_an_error_of_its_own(refused: Redis) -> None:
    store = RedisLockStore(refused)

    with pytest.raises(StoreAway):
        store.take("key", "owner", FIVE_S)
