"""Pieces, taken together: never more than is there, never later than was asked."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from jobs.core.errors import Transient
from jobs.providers.port import OutputDelta
from jobs.services.output.pump import Batch, End, Pump
from tests.services.waiting import wait_until


def a_batch(pump: Pump, *, most_chars: int = 100) -> Batch:
    return pump.take(idle_s=5, collect_s=0.05, most_chars=most_chars)


def test_pieces_come_together_with_the_last_ones_place_and_the_end() -> None:
    pump = Pump(lambda: iter([OutputDelta("The ", "1"), OutputDelta("end", "2")]), most_chars=1000)
    pump.start()

    assert a_batch(pump) == Batch("The end", "2", End(None))


def test_what_is_enough_is_not_waited_for_any_longer() -> None:
    pump = Pump(
        lambda: iter([OutputDelta("1234", "1"), OutputDelta("5678", "2"), OutputDelta("9", "3")]), most_chars=1000
    )
    pump.start()

    assert a_batch(pump, most_chars=6) == Batch("12345678", "2")
    assert a_batch(pump) == Batch("9", "3", End(None))


def test_a_silent_provider_holds_up_nobody() -> None:
    silent = threading.Event()

    def follow() -> Iterator[OutputDelta]:
        yield OutputDelta("The ")
        silent.wait(5)

    pump = Pump(follow, most_chars=1000)
    pump.start()

    assert a_batch(pump) == Batch("The ", None)
    assert pump.take(idle_s=0.01, collect_s=0.01, most_chars=100) == Batch("", None)
    silent.set()


def test_more_than_is_kept_is_not_read() -> None:
    """Pieces that wait are held in memory, and one may be as large as a whole message."""
    read: list[int] = []

    def follow() -> Iterator[OutputDelta]:
        for number in range(5):
            read.append(number)
            yield OutputDelta("x" * 600)

    pump = Pump(follow, most_chars=1000)
    pump.start()

    assert len(a_batch(pump, most_chars=10_000).text) == 1200
    assert read == [0, 1]


def test_an_error_comes_after_what_was_heard_before_it() -> None:
    broken = Transient("cut off")

    def follow() -> Iterator[OutputDelta]:
        yield OutputDelta("The ")
        raise broken

    pump = Pump(follow, most_chars=1000)
    pump.start()

    assert a_batch(pump) == Batch("The ", None, End(broken))


def test_a_provider_that_cannot_even_be_asked_is_an_end() -> None:
    pump = Pump(lambda: iter(1 / 0), most_chars=1000)  # type: ignore[call-overload] # it breaks before that
    pump.start()

    end = a_batch(pump).end

    assert end is not None
    assert isinstance(end.error, ZeroDivisionError)


def test_whoever_stops_closes_the_connection_though_nobody_takes_what_was_heard() -> None:
    closed = threading.Event()

    def follow() -> Iterator[OutputDelta]:
        try:
            while True:
                yield OutputDelta("again ")
        finally:
            closed.set()

    pump = Pump(follow, most_chars=1000)
    pump.start()
    assert a_batch(pump, most_chars=6).text == "again "

    pump.stop()

    wait_until(closed.is_set, within_s=5, what="the connection closed")
