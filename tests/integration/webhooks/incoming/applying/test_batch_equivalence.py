"""A batch does to jobs what its events would have done one after another."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from jobs.clock import FakeClock
from jobs.storage.database import Database
from tests.integration.webhooks.incoming.world import World, a_world, says

_WORDS = ("queued", "processing", "processing", "succeeded", "failed", "canceled", "paused?", "")
_ODD: dict[str, tuple[Any, ...]] = {
    "progress": (0, 0.4, 1, -3, 1e308, 10**30, "half", None, True, {"a": 1}),
    "output": (None, {}, {"n": 2**70}, {"t": "a\x00b\ud800c"}, [], [None, 1.5], "text", 0, {"k\x00": {"\ud83d": 1}}),
    "error": (None, "bad\x00", {"code": "x" * 600, "message": "\udfff"}, {"code": 7}, [], {"code": None}),
    "cost": (None, 0.02, 3, -1, 1e308, 10**40, "1", True),
    "artifacts": (None, [], "no", [{"url": "https://files.example/\x00"}], [{"url": 7}]),
    "occurred_at": (None, "yesterday", "2026-01-01T00:00:00Z", "9999-12-31T23:59:59Z", 10**18),
}
_RUNS = ("p-0", "p-1", "p-2", "p-\x00", "p-\ud800", "p-unknown", "p" * 240)
_COLUMNS = ("state", "version", "output", "error", "cost", "progress", "late_outcome", "review_reason", "event_count")


@pytest.fixture
def world(database: Database, clock: FakeClock) -> Iterator[World]:
    built = a_world(database, clock)
    yield built
    built.intake.stop()


def an_event(rng: random.Random) -> dict[str, Any]:
    odd = {name: rng.choice(values) for name, values in _ODD.items() if rng.random() < 0.4}
    return says(rng.choice(_WORDS), job=rng.choice(_RUNS if rng.random() < 0.3 else _RUNS[:3]), **odd)


def tell(world: World, events: list[dict[str, Any]], *, prefix: str, each: bool) -> list[Any]:
    """What became of three jobs, and of every event."""
    ids = [world.submitted_job(f"p-{number}-{prefix}")[0] for number in range(3)]
    for number, event in enumerate(events):
        told = {**event, "job": f"{event['job']}-{prefix}"}
        assert world.deliver(told, delivery_id=f"{prefix}-{number:02}").status == 200
        world.clock.advance(0.001)
        if each:
            world.drain()
    world.drain()
    rows = [row for row in world.events() if str(row["delivery_id"]).startswith(prefix)]
    statuses = [(row["delivery_id"][-2:], row["status"]) for row in rows]
    return [
        [outcome(world.job(job_id)) for job_id in ids],
        [world.history(job_id) for job_id in ids],
        [world.told(job_id) for job_id in ids],
        statuses,
    ]


def outcome(job: dict[str, Any]) -> dict[str, Any]:
    """A job without its times."""
    late = job["late_outcome"]
    return {**{name: job[name] for name in _COLUMNS}, "late_outcome": late and {**late, "at": None}}


@pytest.mark.parametrize("seed", range(6))
def test_a_batch_does_what_its_events_do_one_by_one(world: World, seed: int) -> None:
    rng = random.Random(seed)
    events = [an_event(rng) for _ in range(25)]

    together = tell(world, events, prefix="together", each=False)
    alone = tell(world, events, prefix="alone", each=True)

    assert together == alone
    assert not world.letters()
