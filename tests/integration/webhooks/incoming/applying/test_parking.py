"""Events that come before their job: parked, and woken by whichever side commits last."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from jobs.core.observations import Observation, Source
from tests.integration.webhooks.incoming.world import World, acceptance, says
from webhooks.incoming.applying import batch
from webhooks.incoming.applying.drain import sweep_inbox
from webhooks.incoming.applying.outcomes import PARK_FOR
from webhooks.incoming.applying.parked import wake_parked


def store_answer(world: World, job_id: str, run: str = "p-1") -> None:
    """What the submitter does with the provider's answer: commit the id, then wake what waits for it."""
    with world.database.write() as tx:
        world.runtime.observer.observe(tx, job_id, acceptance(run, tx.now))
    wake_parked(world.runtime, "renders", run)


def test_an_event_of_an_unknown_run_is_parked_and_applied_when_the_run_becomes_known(world: World) -> None:
    """F16: account-level, without a token; no poll, no redelivery."""
    job_id, _ = world.pending_job()
    reply = world.deliver(says("succeeded", job="p-1"))
    world.drain()
    assert (reply.said, world.event()["status"]) == ("accepted", "parked")

    store_answer(world, job_id)

    assert world.job(job_id)["state"] == "succeeded"
    assert world.event()["status"] == "applied"
    assert world.letters() == []


def test_the_submitter_that_commits_before_the_parker_is_seen_by_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F16: the run becomes known after the drain looked for it and before it parked the event."""
    job_id, _ = world.pending_job()
    world.deliver(says("succeeded", job="p-1"))
    whole = batch._wake_found

    def answer_first(runtime: Any, applied: Any) -> None:
        """The submitter's wake-up found no parked row: it ran before the parker's commit."""
        if applied.parked:
            monkeypatch.setattr(batch, "_wake_found", whole)
            with world.database.write() as tx:
                world.runtime.observer.observe(tx, job_id, acceptance("p-1", tx.now))
        whole(runtime, applied)

    monkeypatch.setattr(batch, "_wake_found", answer_first)
    world.drain()

    assert world.job(job_id)["state"] == "succeeded"
    assert world.event()["status"] == "applied"


def test_a_wake_up_that_was_lost_is_healed_by_another_look(world: World) -> None:
    """F16: the submitter died between its commit and the wake-up."""
    job_id, _ = world.pending_job()
    world.deliver(says("succeeded", job="p-1"))
    world.drain()
    with world.database.write() as tx:
        world.runtime.observer.observe(tx, job_id, acceptance("p-1", tx.now))

    world.clock.advance(timedelta(seconds=5))
    assert sweep_inbox(world.runtime) == 1

    assert world.job(job_id)["state"] == "succeeded"


def test_a_run_nobody_knows_is_looked_for_ever_more_rarely_and_expires_quietly(world: World) -> None:
    """F20: no dead letter."""
    world.deliver(says("succeeded", job="p-999"))
    looks, until = 0, world.clock.now() + PARK_FOR
    while (due_at := world.event()["next_try_at"] if looks else world.clock.now()) is not None:
        world.clock.advance(due_at - world.clock.now())
        world.drain()
        looks += 1

    row = world.event()
    assert (row["status"], row["job_id"]) == ("ignored", None)
    assert "24 h" in row["reason"]
    assert world.clock.now() == until
    assert looks < 60
    assert world.letters() == []


def test_looks_at_a_parked_row_are_no_failures(world: World) -> None:
    world.deliver(says("succeeded", job="p-999"))

    for _ in range(12):
        world.drain()
        world.clock.advance(timedelta(hours=1))

    row = world.event()
    assert (row["status"], row["tries"], row["failures"]) == ("parked", 0, 0)


def test_a_token_nobody_gave_without_a_known_run_is_parked(world: World) -> None:
    world.deliver(says("succeeded", job="p-1"), token="guessed")
    world.drain()

    assert world.event()["status"] == "parked"


def test_waking_what_is_not_parked_does_nothing(world: World) -> None:
    wake_parked(world.runtime, "renders", "p-1")

    assert world.events() == []


def test_only_the_providers_own_parked_events_are_woken(world: World) -> None:
    world.deliver(says("succeeded", job="p-1"), provider="renders")
    world.deliver(says("succeeded", job="p-1"), provider="plain")
    world.drain()
    job_id, _ = world.pending_job()

    store_answer(world, job_id)

    assert {row["provider"]: row["status"] for row in world.events()} == {"renders": "applied", "plain": "parked"}


def test_a_wake_up_that_fails_does_not_fail_the_submitter(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from jobs.core.errors import Unavailable
    from webhooks.incoming.applying import parked

    job_id, _ = world.pending_job()
    world.deliver(says("succeeded", job="p-1"))
    world.drain()

    def away(*_: Any) -> Any:
        raise Unavailable

    monkeypatch.setattr(parked, "find_parked", away)
    store_answer(world, job_id)
    world.clock.advance(5)
    world.drain()

    assert world.job(job_id)["state"] == "succeeded"


def test_progress_parked_with_the_end_is_applied_in_order(world: World) -> None:
    job_id, _ = world.pending_job()
    for number, status in enumerate(("processing", "succeeded")):
        world.deliver(says(status, job="p-1", progress=0.5), delivery_id=f"m{number}")
        world.clock.advance(0.001)
    world.drain()

    store_answer(world, job_id)

    assert world.history(job_id) == [("pending", "running", True), ("running", "succeeded", True)]


def test_the_submitters_observation_is_not_undone_by_what_was_parked(world: World) -> None:
    job_id, _ = world.pending_job()
    world.deliver(says("processing", job="p-1"))
    world.drain()
    with world.database.write() as tx:
        ended = Observation(source=Source.POLL, at=tx.now, attempt=1, provider_job_id="p-1", state=_succeeded())
        world.runtime.observer.observe(tx, job_id, ended)

    wake_parked(world.runtime, "renders", "p-1")

    assert world.job(job_id)["state"] == "succeeded"
    assert world.event()["status"] == "ignored"


def _succeeded() -> Any:
    from jobs.core.states import JobState

    return JobState.SUCCEEDED
