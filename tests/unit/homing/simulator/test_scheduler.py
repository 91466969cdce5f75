"""The timer: in time, in order, and not stopped by a bad action."""

from __future__ import annotations

import logging
import threading

import pytest

from homing.simulator.scheduler import Scheduler
from jobs.clock import FakeClock, SystemClock


def test_actions_run_in_the_order_of_their_times_and_then_of_their_calls() -> None:
    clock, ran = FakeClock(), list[str]()
    scheduler = Scheduler(clock)
    for delay_s, name in ((2, "late"), (1, "a"), (1, "b"), (0, "now")):
        scheduler.after(delay_s, lambda name=name: ran.append(name))  # type: ignore[misc]

    counts = [scheduler.run_due()]
    clock.advance(2)
    counts.append(scheduler.run_due())

    assert (counts, ran) == ([1, 3], ["now", "a", "b", "late"])


def test_a_bad_action_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    scheduler, ran = Scheduler(FakeClock()), list[int]()
    scheduler.after(0, lambda: 1 / 0)
    scheduler.after(0, lambda: ran.append(1))

    with caplog.at_level(logging.ERROR):
        scheduler.run_due()

    assert ran == [1]
    assert "ZeroDivisionError" in caplog.text


def test_the_thread_wakes_for_an_action_that_is_sooner_than_the_rest() -> None:
    scheduler, done = Scheduler(SystemClock()), threading.Event()
    scheduler.start()
    scheduler.after(3600, lambda: None)

    scheduler.after(0.01, done.set)

    assert done.wait(5)
    scheduler.stop()


def test_what_is_not_due_at_the_end_never_runs() -> None:
    clock, ran = FakeClock(), list[int]()
    scheduler = Scheduler(clock)
    scheduler.after(1, lambda: ran.append(1))

    scheduler.stop()
    clock.advance(2)

    assert scheduler.run_due() == 0
    assert ran == []
