"""What stored events do to their jobs, in batches, and what follows when that fails."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from datetime import timedelta
from itertools import permutations
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from jobs.broker import RELAY
from jobs.core.errors import Permanent, Transient, Unavailable
from jobs.services import observe
from tests.integration.webhooks.incoming.world import World, says
from tests.vectors import B5
from webhooks.incoming.applying import batch, failing, outcomes
from webhooks.incoming.applying.claims import LEASE, claim_due
from webhooks.incoming.applying.drain import drain, sweep_inbox
from webhooks.incoming.schema import inbox_events


def test_an_event_moves_its_job_and_its_row_in_one_transaction(world: World) -> None:
    job_id, token = world.submitted_job()
    world.deliver(says("processing", progress=0.4), token=token, delivery_id="m1")
    world.clock.advance(0.001)
    world.deliver(says("succeeded", output={"score": 1}), token=token, delivery_id="m2")

    world.drain()

    job = world.job(job_id)
    assert (job["state"], job["output"]) == ("succeeded", {"score": 1})
    assert world.history(job_id) == [("pending", "running", True), ("running", "succeeded", True)]
    for row in world.events():
        assert (row["status"], row["job_id"], row["tenant"]) == ("applied", job_id, "acme")
        assert row["processed_at"] is not None
    assert world.broker.take(RELAY)


def test_history_says_which_event_it_was(world: World) -> None:
    from jobs.storage.schema import job_transitions

    job_id, _ = world.submitted_job()
    world.deliver(says("succeeded"))
    world.drain()

    with world.database.read() as tx:
        step = tx.row(sa.select(job_transitions).where(job_transitions.c.job_id == job_id))
    row = world.event()
    assert step is not None
    assert (step["source"], step["event_id"], step["digest"]) == ("webhook", row["id"], row["digest"])


def test_an_escaped_nul_is_kept_raw_and_applied_cleaned(world: World) -> None:
    """F21: B5, byte for byte."""
    job_id, _ = world.submitted_job(provider="stripy")

    reply = world.deliver(B5.body, provider="stripy")
    world.drain()

    job = world.job(job_id)
    assert reply.said == "accepted"
    assert bytes(world.event()["raw"]) == B5.body
    assert (job["state"], job["error"]["message"]) == ("failed", "bad\ufffdbyte")


def test_a_nul_in_a_batch_of_ten_harms_none_of_the_others(world: World) -> None:
    """F21: the fourth of ten."""
    jobs = [world.submitted_job(f"p-{number}", provider="stripy")[0] for number in range(10)]
    for number in range(10):
        text = "bad\\u0000byte \\ud800" if number == 3 else "plain"
        body = f'{{"id":"evt_{number}","job":"p-{number}","status":"failed","error":"{text}"}}'
        world.deliver(body.encode(), provider="stripy")

    assert drain(world.runtime).settled == 10

    states = [world.job(job_id) for job_id in jobs]
    assert {job["state"] for job in states} == {"failed"}
    assert states[3]["error"]["message"] == "bad\ufffdbyte \ufffd"


def test_what_is_stored_while_the_drain_leaves_the_writer_to_others_is_its_next_batch(world: World) -> None:
    runs = iter(range(5))

    def receive(count: int) -> None:
        for number in itertools.islice(runs, count):
            world.submitted_job(f"p-{number}", provider="stripy")
            world.deliver(f'{{"id":"evt_{number}","job":"p-{number}","status":"failed"}}'.encode(), provider="stripy")

    pauses: list[float] = []

    def pause(span_s: float) -> None:
        pauses.append(span_s)
        receive(2)

    receive(2)
    counts = drain(world.runtime, limit=3, pause=pause)

    assert (counts.claimed, counts.settled) == (5, 5)
    assert len(pauses) == 3
    assert max(pauses) <= 0.05


def test_a_full_batch_is_followed_by_the_next_at_once(world: World) -> None:
    for number in range(4):
        world.submitted_job(f"p-{number}", provider="stripy")
        world.deliver(f'{{"id":"evt_{number}","job":"p-{number}","status":"failed"}}'.encode(), provider="stripy")
    pauses: list[float] = []

    counts = drain(world.runtime, limit=2, pause=pauses.append)

    assert (counts.settled, pauses) == (4, [])


@pytest.mark.parametrize("order", list(permutations(["queued", "processing", "succeeded"])))
def test_an_older_event_after_a_newer_one_moves_nothing_back(world: World, order: tuple[str, ...]) -> None:
    """F17."""
    job_id, _ = world.submitted_job()

    for status in order:
        world.deliver(says(status, progress=0.5), delivery_id=status)
        world.drain()

    job = world.job(job_id)
    assert job["state"] == "succeeded"
    after_the_end = order[order.index("succeeded") + 1 :]
    by_id = {row["delivery_id"]: row for row in world.events()}
    assert all(by_id[status]["status"] == "ignored" and by_id[status]["reason"] for status in after_the_end)


@pytest.mark.parametrize("order", [("failed", "succeeded"), ("succeeded", "failed")])
def test_of_two_ends_the_first_stays_and_the_second_is_a_conflict(world: World, order: tuple[str, str]) -> None:
    """F17: ties."""
    job_id, _ = world.submitted_job()

    for status in order:
        world.deliver(says(status), delivery_id=status)
        world.drain()

    job = world.job(job_id)
    assert (job["state"], job["review_reason"], job["late_outcome"]["state"]) == (
        order[0],
        "conflicting_outcome",
        order[1],
    )
    assert {row["delivery_id"]: row["status"] for row in world.events()} == {order[0]: "applied", order[1]: "conflict"}


def test_an_event_for_a_canceled_job_is_ignored_with_a_reason(world: World) -> None:
    """F20."""
    from jobs.core.observations import Observation, Source
    from jobs.core.states import JobState

    job_id, _ = world.submitted_job()
    with world.database.write() as tx:
        canceled = Observation(source=Source.OPERATOR, at=tx.now, state=JobState.CANCELED)
        world.runtime.observer.observe(tx, job_id, canceled)

    world.deliver(says("processing"), delivery_id="m1")
    world.deliver(says("succeeded"), delivery_id="m2")
    world.drain()

    assert world.job(job_id)["state"] == "canceled"
    assert {row["status"] for row in world.events()} == {"ignored"}
    assert all(row["reason"] for row in world.events())
    assert world.letters() == []


def test_an_unknown_status_asks_for_a_person_and_guesses_nothing(world: World) -> None:
    job_id, _ = world.submitted_job()

    world.deliver(says("hallucinating"))
    world.drain()

    job = world.job(job_id)
    assert (job["state"], job["review_reason"]) == ("pending", "unknown_status")
    assert "hallucinating" in job["review_detail"]


def test_a_wrong_token_under_a_good_signature_is_found_by_the_job_it_names(world: World) -> None:
    job_id, _ = world.submitted_job()

    world.deliver(says("succeeded"), token="wrong")
    world.drain()

    assert world.job(job_id)["state"] == "succeeded"


def test_an_event_on_another_attempts_url_speaks_of_its_own_run(world: World) -> None:
    """The URL is not signed: a recording posted to another job's URL must not touch that job."""
    mine, _ = world.submitted_job("p-1")
    other, other_token = world.pending_job()

    world.deliver(says("succeeded", job="p-1"), token=other_token)
    world.drain()

    assert world.job(mine)["state"] == "succeeded"
    untouched = world.job(other)
    assert (untouched["state"], untouched["provider_job_id"]) == ("pending", None)


def test_a_token_finds_its_attempt_before_the_submit_answer_is_stored(world: World) -> None:
    """F16, by token."""
    job_id, token = world.pending_job()

    world.deliver(says("succeeded", job="p-77"), token=token)
    world.drain()

    job = world.job(job_id)
    assert (job["state"], job["provider_job_id"]) == ("succeeded", "p-77")
    assert world.told(job_id) == ["job.submitted", "job.succeeded"]


def test_a_second_run_under_one_token_is_an_alarm(world: World) -> None:
    job_id, token = world.submitted_job("p-1")

    world.deliver(says("succeeded", job="p-2"), token=token)
    world.drain()

    assert world.job(job_id)["state"] == "pending"
    assert world.event()["status"] == "conflict"
    assert [letter["kind"] for letter in world.letters()] == ["double_submit"]


def test_a_hint_is_not_believed_but_makes_a_poll_due(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    job_id, _ = world.submitted_job()
    adapter = world.runtime.providers["renders"].adapter
    monkeypatch.setattr(adapter, "_capabilities", replace(adapter.capabilities, webhook_is_hint=True))

    world.deliver(says("succeeded"))
    world.drain()

    job = world.job(job_id)
    assert (job["state"], job["next_poll_at"]) == ("pending", world.clock.now())
    assert world.event()["status"] == "applied"


# What follows when it fails


class Crash(BaseException):
    """The process dies here."""


def break_observe(world: World, monkeypatch: pytest.MonkeyPatch, *errors: BaseException | None) -> None:
    """Each call of the one door raises the next error; None lets it pass."""
    whole, queue = type(world.runtime.observer).observe_many, list(errors)

    def broken(self: Any, tx: Any, pairs: Any) -> Any:
        error = queue.pop(0) if queue else None
        if error is not None:
            raise error
        return whole(self, tx, pairs)

    monkeypatch.setattr(type(world.runtime.observer), "observe_many", broken)


def test_work_that_raised_is_done_later_and_the_repeat_is_still_a_duplicate(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F11 (a)."""
    job_id, _ = world.submitted_job()
    break_observe(world, monkeypatch, Transient("once"), Transient("once"))
    world.deliver(says("succeeded"))

    world.drain()
    assert world.job(job_id)["state"] == "pending"
    again = world.deliver(says("succeeded"))
    world.clock.advance(timedelta(minutes=1))
    world.drain()

    assert again.said == "duplicate"
    assert world.history(job_id) == [("pending", "succeeded", True)]
    assert world.event()["status"] == "applied"


def test_a_worker_killed_after_its_claim_is_replaced_when_its_lease_ends(world: World) -> None:
    """F11 (b): no redelivery."""
    job_id, _ = world.submitted_job()
    world.deliver(says("succeeded"))
    with world.database.write() as tx:
        assert len(claim_due(tx, token="of a dead worker", limit=10)) == 1

    world.drain()
    assert world.job(job_id)["state"] == "pending"
    world.clock.advance(LEASE)
    assert sweep_inbox(world.runtime) == 1

    assert world.history(job_id) == [("pending", "succeeded", True)]


def test_a_crash_inside_the_transaction_leaves_nothing_half_done(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    job_id, _ = world.submitted_job()
    world.deliver(says("succeeded"))
    settle = outcomes.settle
    monkeypatch.setattr(outcomes, "settle", lambda *_a, **_k: (_ for _ in ()).throw(Crash()))
    with pytest.raises(Crash):
        world.drain()
    monkeypatch.setattr(outcomes, "settle", settle)

    assert (world.job(job_id)["state"], world.history(job_id)) == ("pending", [])
    world.clock.advance(LEASE)
    world.drain()

    assert world.history(job_id) == [("pending", "succeeded", True)]


def test_a_lost_message_loses_nothing(world: World) -> None:
    """F11 (c), F60 (b): the row is committed, the bell is lost, the sweep comes by."""
    job_id, _ = world.submitted_job()
    world.broker.reachable = False

    reply = world.deliver(says("succeeded"))
    sweep_inbox(world.runtime)

    assert reply.said == "accepted"
    assert world.job(job_id)["state"] == "succeeded"


@pytest.mark.invariant("I7")
def test_a_worker_that_lost_its_lease_writes_nothing(world: World) -> None:
    """I7: the row passed to another worker, which is at it now."""
    job_id, _ = world.submitted_job()
    world.deliver(says("succeeded"))
    with world.database.write() as tx:
        rows = claim_due(tx, token="slow", limit=10)
    world.clock.advance(LEASE)
    with world.database.write() as tx:
        assert claim_due(tx, token="quick", limit=10)

    batch.apply_claimed(world.runtime, rows, token="slow")

    assert world.job(job_id)["state"] == "pending"
    assert (world.event()["lease_token"], world.event()["tries"]) == ("quick", 2)


def test_a_row_that_kills_its_worker_is_buried_after_three_starts_and_the_others_live(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten good events share the first batch with the bad one."""
    jobs = [world.submitted_job(f"p-{number}")[0] for number in range(11)]
    for number in range(11):
        world.deliver(says("succeeded", job=f"p-{number}"), delivery_id=f"m{number}")
    read_work = batch.read_work

    def deadly(runtime: Any, row: Any, raw: bytes) -> Any:
        if row["provider_job_id"] == "p-4":
            raise Crash
        return read_work(runtime, row, raw)

    monkeypatch.setattr(batch, "read_work", deadly)
    deaths = 0
    for _ in range(20):
        try:
            world.drain()
        except Crash:
            deaths += 1
        world.clock.advance(LEASE)

    assert deaths == 3
    assert [world.job(job_id)["state"] for job_id in jobs] == ["succeeded"] * 4 + ["pending"] + ["succeeded"] * 6
    (letter,) = world.letters()
    dead = next(row for row in world.events() if row["status"] == "dead")
    assert (letter["kind"], letter["ref"]) == ("inbox", dead["id"])


def test_five_failures_with_growing_waits_make_a_dead_letter(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    job_id, _ = world.submitted_job()
    break_observe(world, monkeypatch, *[Transient("not now")] * 100)
    world.deliver(says("succeeded"))
    waits = []

    for _ in range(failing.MAX_FAILURES):
        world.drain()
        due_at = world.event()["next_try_at"]
        if due_at is not None:
            waits.append((due_at - world.clock.now()).total_seconds())
            world.clock.advance(due_at - world.clock.now())

    row = world.event()
    (letter,) = world.letters()
    assert len(waits) == 4
    assert all(2.5 * 2**n <= wait <= 5 * 2**n for n, wait in enumerate(waits))
    assert (row["status"], row["failures"], row["reason"]) == ("dead", 5, "Transient: not now")
    assert (letter["kind"], letter["ref"], letter["attempts"]) == ("inbox", row["id"], 5)
    assert letter["first_failed_at"] < letter["last_failed_at"]
    assert world.job(job_id)["state"] == "pending"


def test_what_will_never_work_is_buried_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.submitted_job()
    break_observe(world, monkeypatch, Permanent("no"), Permanent("no"))
    world.deliver(says("succeeded"))

    world.drain()

    assert world.event()["status"] == "dead"
    assert len(world.letters()) == 1


def test_one_bad_row_fails_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [world.submitted_job(f"p-{number}")[0] for number in range(3)]
    for number in range(3):
        world.deliver(says("succeeded", job=f"p-{number}"), delivery_id=f"m{number}")
    whole = observe.Observer.observe_many

    def fail_for_one(self: Any, tx: Any, pairs: Any) -> Any:
        if jobs[1] in [job_id for job_id, _ in pairs]:
            raise ValueError("a row of trouble")
        return whole(self, tx, pairs)

    monkeypatch.setattr(observe.Observer, "observe_many", fail_for_one)

    counts = drain(world.runtime)

    assert (counts.settled, counts.failed) == (2, 1)
    assert [world.job(job_id)["state"] for job_id in jobs] == ["succeeded", "pending", "succeeded"]


def test_a_bad_row_that_passed_to_another_worker_takes_nothing_of_the_others_along(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I7: what follows from its failure is the other worker's to write; the rest of the batch is ours still."""
    jobs = [world.submitted_job(f"p-{number}")[0] for number in range(3)]
    for number in range(3):
        world.deliver(says("succeeded", job=f"p-{number}"), delivery_id=f"m{number}")
    with world.database.write() as tx:
        rows = claim_due(tx, token="slow", limit=10)
        passed = inbox_events.c.id == next(row["id"] for row in rows if row["provider_job_id"] == "p-1")
        tx.execute(sa.update(inbox_events).where(passed).values(lease_token="quick"))
    whole = observe.Observer.observe_many

    def fail_for_one(self: Any, tx: Any, pairs: Any) -> Any:
        if jobs[1] in [job_id for job_id, _ in pairs]:
            raise ValueError("a row of trouble")
        return whole(self, tx, pairs)

    monkeypatch.setattr(observe.Observer, "observe_many", fail_for_one)

    counts = batch.apply_claimed(world.runtime, rows, token="slow")

    assert counts.settled == 2
    assert [world.job(job_id)["state"] for job_id in jobs] == ["succeeded", "pending", "succeeded"]
    left = next(row for row in world.events() if row["provider_job_id"] == "p-1")
    assert (left["lease_token"], left["failures"]) == ("quick", 0)


def test_one_row_that_cannot_be_read_fails_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [world.submitted_job(f"p-{number}")[0] for number in range(3)]
    for number in range(3):
        world.deliver(says("succeeded", job=f"p-{number}"), delivery_id=f"m{number}")
    read_work = batch.read_work

    def fail_for_one(runtime: Any, row: Any, raw: bytes) -> Any:
        if row["provider_job_id"] == "p-1":
            raise ValueError("what its adapter did not expect")
        return read_work(runtime, row, raw)

    monkeypatch.setattr(batch, "read_work", fail_for_one)

    counts = drain(world.runtime)

    assert (counts.claimed, counts.settled, counts.failed) == (3, 2, 1)
    assert [world.job(job_id)["state"] for job_id in jobs] == ["succeeded", "pending", "succeeded"]
    left = next(row for row in world.events() if row["provider_job_id"] == "p-1")
    assert (left["status"], left["failures"], left["lease_token"]) == ("accepted", 1, None)


def test_an_outage_is_no_fault_of_the_rows(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    job_id, _ = world.submitted_job()
    world.deliver(says("succeeded"))
    whole = batch.load_raw

    def away(*_: Any) -> Any:
        raise Unavailable("the database is away")

    for _ in range(5):
        monkeypatch.setattr(batch, "load_raw", away)
        with pytest.raises(Unavailable):
            world.drain()
        world.clock.advance(1)
    monkeypatch.setattr(batch, "load_raw", whole)

    row = world.event()
    assert (row["status"], row["tries"], row["failures"]) == ("accepted", 0, 0)
    world.drain()
    assert world.job(job_id)["state"] == "succeeded"


def test_a_lock_on_one_job_holds_up_no_other_and_counts_as_no_failure(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [world.submitted_job(f"p-{number}")[0] for number in range(3)]
    for number in range(3):
        world.deliver(says("processing", job=f"p-{number}"), delivery_id=f"a{number}")
        world.deliver(says("succeeded", job=f"p-{number}"), delivery_id=f"b{number}")
    whole, waits = observe.Observer.observe_many, []

    def locked(self: Any, tx: Any, pairs: Any) -> Any:
        if jobs[1] in [job_id for job_id, _ in pairs]:
            waits.append(len(pairs))
            raise OperationalError("SELECT", {}, Exception("lock timeout"))
        return whole(self, tx, pairs)

    monkeypatch.setattr(observe.Observer, "observe_many", locked)
    world.drain()
    monkeypatch.setattr(observe.Observer, "observe_many", whole)

    assert waits == [6, 1]  # the lock was waited for once in the batch, once alone
    assert [world.job(job_id)["state"] for job_id in jobs] == ["succeeded", "pending", "succeeded"]
    assert {(row["tries"], row["failures"]) for row in world.events() if row["status"] == "accepted"} == {(0, 0)}
    world.clock.advance(5)
    world.drain()
    assert world.job(jobs[1])["state"] == "succeeded"


def test_a_provider_this_process_does_not_know_is_tried_again(world: World) -> None:
    job_id, _ = world.submitted_job()
    world.deliver(says("succeeded"))
    known = world.runtime.providers
    world.runtime.providers = {}

    world.drain()
    world.runtime.providers = known
    world.clock.advance(10)
    world.drain()

    assert world.job(job_id)["state"] == "succeeded"


def test_large_bodies_are_worked_on_a_few_at_a_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "_MAX_BATCH_BYTES", 1000)
    sizes: list[int] = []
    whole = batch.load_raw

    def loading(tx: Any, ids: Any) -> Any:
        raw = whole(tx, ids)
        sizes.append(sum(map(len, raw.values())))
        return raw

    monkeypatch.setattr(batch, "load_raw", loading)
    jobs = [world.submitted_job(f"p-{number}")[0] for number in range(5)]
    for number in range(5):
        body = json.dumps(says("succeeded", job=f"p-{number}", output="x" * 400))
        world.deliver(body.encode(), delivery_id=f"m{number}")

    assert drain(world.runtime).settled == 5
    assert max(sizes) <= 1000
    assert {world.job(job_id)["state"] for job_id in jobs} == {"succeeded"}


def test_a_burst_larger_than_a_batch_is_drained_whole(world: World) -> None:
    jobs = [world.submitted_job(f"p-{number}")[0] for number in range(7)]
    for number in range(7):
        world.deliver(says("succeeded", job=f"p-{number}"), delivery_id=f"m{number}")

    assert drain(world.runtime, limit=3).settled == 7
    assert {world.job(job_id)["state"] for job_id in jobs} == {"succeeded"}


@pytest.fixture(autouse=True)
def _nothing_due_is_forgotten(world: World) -> Iterator[None]:
    """After every test: what waits is due at some time, what is settled is not."""
    yield
    with world.database.read() as tx:
        rows = tx.rows(sa.select(inbox_events.c.status, inbox_events.c.next_try_at))
    assert all((row["status"] in ("accepted", "parked")) == (row["next_try_at"] is not None) for row in rows)
