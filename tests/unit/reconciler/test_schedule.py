"""The schedule beat ticks by."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.broker import CANARY, EVENT_QUEUES, IO_QUEUES, SWEEP
from reconciler.registry import build_sweeps
from reconciler.schedule import TICKS, Tick, beat_schedule, expected_heartbeats, find_tick


def test_every_sweep_is_ticked_and_every_tick_has_its_sweeps() -> None:
    ticked = [name for tick in TICKS for name in tick.sweeps]

    assert sorted(ticked) == sorted(build_sweeps(apply_inbox=lambda _runtime: 0, send_deliveries=lambda _runtime: 0))


def test_due_polls_are_looked_for_each_second_and_the_inbox_every_five() -> None:
    periods = {name: tick.period for tick in TICKS for name in tick.sweeps}

    assert periods["polls"] == timedelta(seconds=1)
    assert periods["inbox"] <= timedelta(seconds=5)


def test_a_dead_owners_lock_ends_before_its_heartbeat_is_stale() -> None:
    assert all(tick.lock_ttl < 3 * tick.period + timedelta(seconds=10) for tick in TICKS)


def test_a_sweep_ends_before_its_lock_would() -> None:
    assert all(tick.bound < tick.lock_ttl for tick in TICKS)


def test_messages_that_nobody_took_do_not_pile_up() -> None:
    """F53: missed ticks merge."""
    for entry in beat_schedule().values():
        period_s = entry["schedule"].total_seconds()
        assert period_s < entry["options"]["expires"] <= period_s + 5


def test_every_queue_has_a_canary_that_travels_through_it() -> None:
    """F55."""
    canaries = {
        entry["args"][0]: entry["options"]["queue"] for entry in beat_schedule().values() if entry["task"] == CANARY
    }

    assert canaries == {queue: queue for queue in (*EVENT_QUEUES, *IO_QUEUES)}


def test_sweeps_have_a_queue_to_themselves() -> None:
    assert {e["options"]["queue"] for e in beat_schedule().values() if e["task"] == SWEEP} == {"reconcile"}


def test_everything_that_is_ticked_is_expected_to_be_heard_of() -> None:
    expected = expected_heartbeats()

    assert expected["sweep.polls"] == timedelta(seconds=1)
    assert {name for name in expected if name.startswith("sweep.")} == {
        f"sweep.{name}" for tick in TICKS for name in tick.sweeps
    }
    assert {name for name in expected if name.startswith("queue.")} == {
        f"queue.{name}" for name in (*EVENT_QUEUES, *IO_QUEUES)
    }


def test_a_tick_is_found_by_its_name() -> None:
    found = find_tick("due")

    assert found is not None
    assert "polls" in found.sweeps
    assert find_tick("of the next release") is None


@pytest.mark.parametrize(
    "fault",
    [{"lock_ttl": timedelta(0)}, {"period": timedelta(0)}, {"bound": timedelta(0)}, {"sweeps": ()}],
)
def test_a_tick_that_could_not_work_is_refused(fault: dict[str, object]) -> None:
    """F53: a lock time of 0 is refused at start."""
    settings: dict[str, object] = {"name": "due", "period": timedelta(seconds=1), "sweeps": ("polls",), **fault}

    with pytest.raises(ValueError, match=r"needs a period|would exclude nobody"):
        Tick(**settings)  # type: ignore[arg-type]
