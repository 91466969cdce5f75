"""The bell without Redis: once per burst, silent when it fails."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import redis

from jobs.broker import DRAIN
from jobs.clock import FakeClock
from tests.fakes.broker import RecordingBroker
from webhooks.incoming.bell import Bell, RingFlag


class Flag:
    """A flag in memory; can be away."""

    def __init__(self) -> None:
        self.is_up = False
        self.is_away = False
        self.asked = 0

    def put_up(self) -> bool:
        self.asked += 1
        if self.is_away:
            raise redis.ConnectionError("away")
        was_up, self.is_up = self.is_up, True
        return not was_up

    def take_down(self) -> bool:
        self.is_up = False
        return True


@pytest.fixture
def flag() -> Flag:
    return Flag()


def a_bell(flag: Any, broker: RecordingBroker, clock: FakeClock) -> Bell:
    return Bell(flag, broker, monotonic=clock.monotonic)


def test_while_the_flag_is_up_no_message_is_sent(flag: Flag, clock: FakeClock) -> None:
    broker = RecordingBroker()
    bell = a_bell(flag, broker, clock)

    assert [bell.ring_now() for _ in range(3)] == [True, False, False]
    assert broker.messages == [(DRAIN,)]


def test_a_message_that_was_not_sent_leaves_no_flag_behind(flag: Flag, clock: FakeClock) -> None:
    bell = a_bell(flag, RecordingBroker(reachable=False), clock)

    assert bell.ring_now() is False
    assert flag.is_up is False


def test_after_a_failure_nothing_is_asked_for_a_while(flag: Flag, clock: FakeClock) -> None:
    broker = RecordingBroker()
    bell = a_bell(flag, broker, clock)
    flag.is_away = True

    bell.ring_now()
    bell.ring_now()
    assert flag.asked == 1
    flag.is_away = False
    clock.advance(4.9)
    assert bell.ring_now() is False
    clock.advance(0.1)

    assert bell.ring_now() is True


def test_ringing_waits_for_nobody_and_many_rings_become_one(flag: Flag, clock: FakeClock) -> None:
    reached, go_on = threading.Event(), threading.Event()

    class Slow(RecordingBroker):
        def publish(self, name: str, *args: str) -> bool:
            reached.set()
            go_on.wait(5)
            flag.take_down()  # the drain has begun
            return super().publish(name, *args)

    broker = Slow()
    bell = a_bell(flag, broker, clock)
    bell.ring()
    assert reached.wait(5)
    for _ in range(100):
        bell.ring()
    go_on.set()
    bell.stop()

    assert broker.messages == [(DRAIN,)] * 2  # the one under way, and one for all that came meanwhile


def test_whatever_goes_wrong_the_bell_rings_again_later(flag: Flag, clock: FakeClock) -> None:
    class Odd(RecordingBroker):
        def publish(self, name: str, *args: str) -> bool:
            if clock.monotonic() < 1:
                raise RuntimeError("never raise here")
            return super().publish(name, *args)

    broker = Odd()
    bell = a_bell(flag, broker, clock)
    bell.ring()
    bell.stop()
    flag.take_down()
    clock.advance(10)
    bell.ring()
    bell.stop()

    assert broker.messages == [(DRAIN,)]


def test_without_redis_every_ring_is_sent(clock: FakeClock) -> None:
    broker = RecordingBroker()
    bell = a_bell(RingFlag(None), broker, clock)

    assert [bell.ring_now(), bell.ring_now()] == [True, True]
    assert RingFlag(None).take_down() is True
