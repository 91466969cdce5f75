"""A callback dropped, repeated, reordered, delayed ten minutes: the same final state each time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.core.observations import Evidence, Observation, Source
from jobs.core.states import JobState
from tests.integration.webhooks.incoming.world import World, says

TEN_MINUTES = timedelta(minutes=10)
STORY = ("queued", "processing", "succeeded")
OUTPUT = {"frames": 24}


def event(status: str, run: str) -> dict[str, Any]:
    return says(status, job=run, output=OUTPUT if status == "succeeded" else None)


def poll(world: World, job_id: str, run: str) -> None:
    """A status read with our own credential: the provider's truth."""
    with world.database.write() as tx:
        truth = Observation(
            source=Source.POLL,
            at=tx.now,
            attempt=1,
            provider_job_id=run,
            state=JobState.SUCCEEDED,
            output=OUTPUT,
            evidence=Evidence(),
        )
        world.runtime.observer.observe(tx, job_id, truth)


def end_of(world: World, job_id: str) -> tuple[Any, ...]:
    job = world.job(job_id)
    ends = [step for step in world.history(job_id) if step[2] and step[1] == "succeeded"]
    told = [kind for kind in world.told(job_id) if kind == "job.succeeded"]
    return job["state"], job["output"], job["review_reason"], len(ends), len(told)


HOME = ("succeeded", OUTPUT, None, 1, 1)


def test_a_dropped_callback_is_healed_by_a_poll(world: World) -> None:
    job_id, _ = world.submitted_job()

    poll(world, job_id, "p-123")

    assert end_of(world, job_id) == HOME


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (2, 0, 2, 1, 1, 2)])
def test_repeated_and_reordered_callbacks_end_alike(world: World, order: Sequence[int]) -> None:
    job_id, _ = world.submitted_job()

    for number in order:
        world.deliver(event(STORY[number], "p-123"), delivery_id=f"m{number}")
        world.drain()
    poll(world, job_id, "p-123")

    assert end_of(world, job_id) == HOME


def test_a_callback_ten_minutes_late_and_signed_anew_is_taken(world: World) -> None:
    job_id, _ = world.submitted_job()
    world.clock.advance(TEN_MINUTES)

    reply = world.deliver(event("succeeded", "p-123"), signed_at=world.clock.now())
    world.drain()

    assert reply.said == "accepted"
    assert end_of(world, job_id) == HOME


def test_a_callback_ten_minutes_late_with_its_first_signature_is_refused_and_healed_by_a_poll(world: World) -> None:
    job_id, _ = world.submitted_job()
    signed_at = world.clock.now()
    world.clock.advance(TEN_MINUTES)

    reply = world.deliver(event("succeeded", "p-123"), signed_at=signed_at)
    world.drain()
    assert (reply.status, world.events()) == (403, [])
    poll(world, job_id, "p-123")

    assert end_of(world, job_id) == HOME


def test_a_callback_that_comes_after_the_poll_changes_nothing(world: World) -> None:
    job_id, _ = world.submitted_job()
    poll(world, job_id, "p-123")

    reply = world.deliver(event("succeeded", "p-123"))
    world.drain()

    assert reply.said == "accepted"
    assert end_of(world, job_id) == HOME
    assert "repeated" in world.event()["reason"]


@pytest.mark.invariant("I4")
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    fate=st.lists(
        st.tuples(st.sampled_from(range(3)), st.sampled_from(["now", "late", "stale"]), st.booleans()), max_size=8
    )
)
def test_whatever_becomes_of_the_callbacks_a_poll_makes_every_job_end_alike(world: World, fate: Any) -> None:
    run = f"p-{world.clock.now().timestamp()}"
    job_id, token = world.submitted_job(run)

    for number, delay, drains in fate:
        signed_at = world.clock.now()
        world.clock.advance(TEN_MINUTES if delay != "now" else timedelta(seconds=1))
        at = signed_at if delay == "stale" else world.clock.now()
        event_id = f"{run}-{number}"
        world.deliver(event(STORY[number], run), token=token, delivery_id=event_id, signed_at=at)
        if drains:
            world.drain()
    poll(world, job_id, run)
    world.drain()
    world.clock.advance(1)

    assert end_of(world, job_id) == HOME
