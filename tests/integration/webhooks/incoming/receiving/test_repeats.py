"""Which deliveries are the same, which contradict each other, and what an id that is none counts for."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from jobs.storage.database import Database
from tests.integration.webhooks.incoming.world import World, says
from webhooks.incoming.receiving import statements as hot_statements


def test_the_same_id_of_another_provider_is_another_event(world: World) -> None:
    """F13 (a), (b): the key is the provider entry and the id."""
    first, _ = world.submitted_job("p-1", provider="renders")
    second, _ = world.submitted_job("q-1", provider="stripy")

    one = world.deliver(says("succeeded", job="p-1"), provider="renders", delivery_id="evt_1")
    other = world.deliver(says("succeeded", job="q-1"), provider="stripy", delivery_id="evt_1")
    world.drain()

    assert (one.said, other.said) == ("accepted", "accepted")
    assert world.job(first)["state"] == world.job(second)["state"] == "succeeded"


@pytest.mark.parametrize("is_remembered", [True, False], ids=["same process", "other process"])
def test_the_same_id_with_another_word_is_a_conflict_that_is_kept_and_not_applied(
    world: World, is_remembered: bool
) -> None:
    """F13 (c)."""
    job_id, _ = world.submitted_job()
    first = world.deliver(says("succeeded"))
    if not is_remembered:
        world.intake.committer.stop()
        world.intake.committer._reset()

    second = world.deliver(says("failed"))
    third = world.deliver(says("failed"))
    world.drain()

    rows = {row["status"]: row for row in world.events()}
    assert (first.said, second.said, third.said) == ("accepted", "conflict", "conflict")
    assert set(rows) == {"applied", "conflict"}
    assert b"failed" in bytes(rows["conflict"]["raw"])
    assert rows["conflict"]["duplicates"] == 1
    assert second.json["event"] == third.json["event"] == rows["conflict"]["id"]
    assert rows["applied"]["id"] in rows["conflict"]["reason"]
    assert world.job(job_id)["state"] == "succeeded"
    assert world.history(job_id) == [("pending", "succeeded", True)]


def test_the_same_id_for_another_job_is_a_conflict(world: World) -> None:
    first, _ = world.submitted_job("p-1")
    second, _ = world.submitted_job("p-2")

    world.deliver(says("succeeded", job="p-1"))
    reply = world.deliver(says("succeeded", job="p-2"))
    world.drain()

    assert reply.said == "conflict"
    assert (world.job(first)["state"], world.job(second)["state"]) == ("succeeded", "pending")


def test_a_body_that_counts_its_attempts_is_one_event(world: World) -> None:
    """F12 (c), with an id."""
    job_id, _ = world.submitted_job()

    first = world.deliver(says("succeeded", attempt=1))
    second = world.deliver(says("succeeded", attempt=2))
    world.drain()

    assert (first.said, second.said) == ("accepted", "duplicate")
    assert world.event()["duplicates"] == 1
    assert world.history(job_id) == [("pending", "succeeded", True)]


def no_id(status: str = "succeeded", *, job: str = "p-123", **fields: Any) -> dict[str, Any]:
    return {"job": job, "status": status, **fields}


def test_events_without_an_id_do_not_share_one(world: World) -> None:
    """F12 (a)."""
    first, _ = world.submitted_job("p-1", provider="stripy")
    second, _ = world.submitted_job("p-2", provider="stripy")

    replies = [world.deliver(no_id(job=run), provider="stripy") for run in ("p-1", "p-2")]
    world.drain()

    assert [reply.said for reply in replies] == ["accepted", "accepted"]
    assert world.job(first)["state"] == world.job(second)["state"] == "succeeded"
    assert {row["delivery_id"] for row in world.events()} == {None}


@pytest.mark.parametrize("useless", [None, "", 0, 17, {"a": 1}, [], True, 1.5, "x" * 10_240])
def test_a_useless_id_counts_as_none(world: World, useless: Any) -> None:
    """F12 (b)."""
    job_id, _ = world.submitted_job(provider="stripy")

    first = world.deliver(no_id("processing", id=useless), provider="stripy")
    second = world.deliver(no_id("succeeded", id=useless), provider="stripy")
    again = world.deliver(no_id("succeeded", id=useless), provider="stripy")
    world.drain()

    assert [reply.said for reply in (first, second, again)] == ["accepted", "accepted", "duplicate"]
    assert {row["delivery_id"] for row in world.events()} == {None}
    assert world.job(job_id)["state"] == "succeeded"


def test_without_an_id_a_counting_body_still_makes_one_transition(world: World) -> None:
    """F12 (c)."""
    job_id, _ = world.submitted_job(provider="stripy")

    for number in (1, 2):
        world.deliver(no_id(attempt=number), provider="stripy")
    world.drain()

    assert world.history(job_id) == [("pending", "succeeded", True)]
    assert world.told(job_id) == ["job.submitted", "job.succeeded"]
    assert {row["status"] for row in world.events()} == {"applied"}


def test_two_equal_progress_events_without_id_are_harmless(world: World) -> None:
    """F12 (d)."""
    job_id, _ = world.submitted_job(provider="stripy")

    replies = [world.deliver(no_id("processing", progress=0.5), provider="stripy") for _ in range(2)]
    world.drain()

    assert all(reply.status == 200 for reply in replies)
    job = world.job(job_id)
    assert (job["state"], job["progress"]) == ("running", {"fraction": 0.5, "message": None})


def test_the_id_of_the_signed_header_wins_over_the_body(world: World) -> None:
    world.deliver({**says("succeeded"), "id": "evt_of_the_body"}, delivery_id="msg_of_the_header")

    assert world.event()["delivery_id"] == "msg_of_the_header"


def test_many_different_events_at_once_share_commits_and_each_has_its_own_answer(world: World) -> None:
    barrier = threading.Barrier(16)
    said: dict[int, str] = {}

    def send(number: int) -> None:
        barrier.wait()
        said[number] = world.deliver(says("processing", job=f"p-{number // 2}"), delivery_id=f"m{number // 2}").said

    threads = [threading.Thread(target=send, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(said.values()) == ["accepted"] * 8 + ["duplicate"] * 8
    rows = world.events()
    assert len(rows) == 8
    assert [row["duplicates"] for row in rows] == [1] * 8


def test_a_repeat_is_looked_up_by_its_key_however_much_the_inbox_holds(sqlite_url: str) -> None:
    """Read whole, an inbox of a million rows would hold the writer up for seconds, at every repeat of an old event."""
    database = Database.connect(sqlite_url)
    with database.read() as tx:
        plan = tx.connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {hot_statements._SQLITE_KNOWN}", ("[]",)).all()
    database.close()

    words = [row[-1] for row in plan]
    assert any("USING INDEX" in word and "dedupe_key=?" in word for word in words), words
    assert not any(word.startswith("SCAN i") for word in words), words
