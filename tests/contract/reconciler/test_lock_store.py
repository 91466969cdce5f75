"""One suite for stores of locks: the fake that the other tests use, and Redis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TypeAlias

import pytest

from homing.redis_urls import connect
from jobs.clock import FakeClock
from reconciler.lock import LockStore, RedisLockStore
from tests.fakes.locks import MemoryLockStore
from tests.services.waiting import wait_until

LONG = timedelta(seconds=60)
SHORT = timedelta(milliseconds=30)
Pass: TypeAlias = Callable[[], None]


@pytest.fixture(params=["fake", "redis"])
def case(request: pytest.FixtureRequest, clock: FakeClock) -> Iterator[tuple[LockStore, Pass]]:
    """A store, and what lets ``SHORT`` pass."""
    if request.param == "fake":
        yield MemoryLockStore(clock), lambda: clock.advance(SHORT)
        return
    with connect(request.getfixturevalue("redis_url")) as client:
        gone = lambda: not client.exists("key")  # noqa: E731
        yield RedisLockStore(client), lambda: wait_until(gone, within_s=5, what="the lock's end")


@pytest.fixture
def store(case: tuple[LockStore, Pass]) -> LockStore:
    return case[0]


@pytest.fixture
def let_it_end(case: tuple[LockStore, Pass]) -> Pass:
    return case[1]


def test_a_key_has_one_owner(store: LockStore) -> None:
    assert store.take("key", "a", LONG)
    assert not store.take("key", "b", LONG)
    assert not store.take("key", "a", LONG)
    assert store.take("other", "b", LONG)


def test_only_the_owner_renews(store: LockStore) -> None:
    store.take("key", "a", LONG)

    assert store.renew("key", "a", LONG)
    assert not store.renew("key", "b", LONG)
    assert not store.renew("nobody's", "a", LONG)


def test_only_the_owner_frees(store: LockStore) -> None:
    store.take("key", "a", LONG)

    assert not store.drop("key", "b")
    assert not store.take("key", "b", LONG)
    assert store.drop("key", "a")
    assert not store.drop("key", "a")
    assert store.take("key", "b", LONG)


def test_a_key_ends_by_itself_and_its_old_owner_has_no_say_any_more(store: LockStore, let_it_end: Pass) -> None:
    store.take("key", "a", SHORT)
    let_it_end()

    assert not store.renew("key", "a", LONG)
    assert store.take("key", "b", LONG)
    assert not store.renew("key", "a", LONG)
    assert not store.drop("key", "a")


def test_a_renewal_replaces_the_end_and_does_not_add_to_it(store: LockStore, let_it_end: Pass) -> None:
    store.take("key", "a", LONG)
    store.renew("key", "a", SHORT)
    let_it_end()

    assert store.take("key", "b", LONG)
