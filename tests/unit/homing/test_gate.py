from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import pytest

from homing.gate import gated
from tests.services.waiting import wait_until


def call(app: Any) -> Iterable[bytes]:
    found: Iterable[bytes] = app({}, lambda *_: None)
    return found


def test_no_more_requests_than_seats_are_at_work() -> None:
    go_on, at_work = threading.Event(), []

    def app(*_: Any) -> list[bytes]:
        at_work.append(1)
        go_on.wait(10)
        return [b"done"]

    front = gated(app, seats=2)
    threads = [threading.Thread(target=call, args=(front,)) for _ in range(5)]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(at_work) == 2, within_s=10, what="two at work")

    assert not any(thread.join(0.05) or not thread.is_alive() for thread in threads)
    assert len(at_work) == 2

    go_on.set()
    for thread in threads:
        thread.join(10)
    assert len(at_work) == 5


def test_an_answer_that_is_still_sent_holds_no_seat() -> None:
    front = gated(lambda *_: iter([b"a", b"b"]), seats=1)

    bodies = [call(front), call(front), call(front)]

    assert [next(iter(body)) for body in bodies] == [b"a"] * 3


def test_a_request_that_fails_gives_its_seat_back() -> None:
    def app(*_: Any) -> list[bytes]:
        raise OSError("gone")

    front = gated(app, seats=1)

    for _ in range(3):
        with pytest.raises(OSError, match="gone"):
            call(front)
