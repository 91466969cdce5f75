"""The process dies between a commit and the network, or between the network and a commit: the next claim heals it.

A kill is an exception that nothing of ours may catch. What is left is what was committed: a lease that ends, a due
time that stays, and for a submit ``sending_at``.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from jobs.clock import FakeClock
from jobs.core.errors import Unavailable
from jobs.core.states import JobState
from jobs.providers.port import Capabilities
from jobs.services.canceling import cancel_run, request_cancel
from jobs.services.claims import claim_due
from jobs.services.polling import poll_job
from jobs.services.submitting.submission import submit_job
from jobs.services.work import LEASE, MAX_STARTS
from jobs.storage.database import Database
from tests.fakes.outages import BreaksOnce
from tests.fakes.provider import (
    NO_KEYS,
    NO_KEYS_WITH_SEARCH,
    REJECT,
    REJECT_WITH_SEARCH,
    REPLAY,
    WITH_SEARCH,
    Effect,
    Killed,
    loses,
    raises,
)
from tests.fakes.stage import Stage, a_stage

MINUTE = timedelta(minutes=1)
BEFORE_IT_LEFT: Effect = raises(Killed())
AFTER_IT_ARRIVED: Effect = loses(Killed())
HEALS_ALONE = [REPLAY, WITH_SEARCH, REJECT_WITH_SEARCH, NO_KEYS_WITH_SEARCH]


@pytest.fixture
def stage(database: Database, clock: FakeClock) -> Stage:
    return a_stage(database, clock)


def die(act: Callable[[], object]) -> None:
    with pytest.raises((Killed, Unavailable)):
        act()


def break_write(stage: Stage, nth: int, error: BaseException) -> None:
    stage.runtime.database = BreaksOnce(stage.database, nth=nth, error=error)  # type: ignore[assignment]


def test_a_kill_after_the_claim_and_before_the_message_costs_only_the_lease(stage: Stage) -> None:
    job_id = stage.new_job()
    claim_due(stage.runtime, "submit", 10)

    stage.end_leases()
    stage.live(MINUTE)

    assert stage.job(job_id)["provider_job_id"] == "p-1"


@pytest.mark.parametrize("effect", [BEFORE_IT_LEFT, AFTER_IT_ARRIVED])
@pytest.mark.parametrize("capabilities", HEALS_ALONE)
def test_a_kill_around_the_submit_is_healed_and_billed_once(
    database: Database, clock: FakeClock, capabilities: Capabilities, effect: Effect
) -> None:
    """F30 b: dead between the provider's 201 and our commit; the next claim asks, or repeats the key."""
    stage = a_stage(database, clock, capabilities=capabilities)
    stage.provider.script("submit", effect)
    job_id = stage.new_job()
    die(lambda: submit_job(stage.runtime, job_id))
    assert stage.attempt(job_id)["sending_at"] is not None
    assert stage.submit(job_id) == "nothing"

    stage.live(timedelta(minutes=3))

    lost_for_good = capabilities == NO_KEYS_WITH_SEARCH and effect is BEFORE_IT_LEFT
    assert len(stage.provider.runs) == (0 if lost_for_good else 1)
    assert stage.job(job_id)["review_reason"] == ("ambiguous_submit" if lost_for_good else None)
    assert len({request.idempotency_key for request in stage.provider.requests}) == 1


@pytest.mark.parametrize("effect", [BEFORE_IT_LEFT, AFTER_IT_ARRIVED])
@pytest.mark.parametrize("capabilities", [NO_KEYS, REJECT])
def test_a_kill_around_a_submit_that_cannot_be_asked_about_calls_a_person_or_proves_itself(
    database: Database, clock: FakeClock, capabilities: Capabilities, effect: Effect
) -> None:
    stage = a_stage(database, clock, capabilities=capabilities)
    stage.provider.script("submit", effect)
    job_id = stage.new_job()
    die(lambda: submit_job(stage.runtime, job_id))

    stage.live(timedelta(minutes=3))

    proven = capabilities == REJECT and effect is BEFORE_IT_LEFT  # the key was not used: now it is
    assert stage.job(job_id)["review_reason"] == (None if proven else "ambiguous_submit")
    assert len(stage.provider.runs) <= 1


@pytest.mark.parametrize("error", [Killed(), Unavailable("gone")])
def test_a_submit_answer_that_could_not_be_written_is_fetched_again(stage: Stage, error: BaseException) -> None:
    job_id = stage.new_job()
    break_write(stage, 2, error)
    die(lambda: submit_job(stage.runtime, job_id))
    assert stage.job(job_id)["provider_job_id"] is None

    stage.live(MINUTE)

    assert stage.job(job_id)["provider_job_id"] == stage.provider.only_run.id


def test_a_kill_before_the_first_commit_has_sent_nothing(stage: Stage) -> None:
    job_id = stage.new_job()
    break_write(stage, 1, Killed())
    die(lambda: submit_job(stage.runtime, job_id))
    assert stage.provider.calls == []

    stage.live(MINUTE)

    assert stage.provider.count("submit") == 1
    assert stage.job(job_id)["provider_job_id"] == "p-1"


def test_a_kill_while_asking_is_asked_again(database: Database, clock: FakeClock) -> None:
    stage = a_stage(database, clock, capabilities=NO_KEYS_WITH_SEARCH)
    stage.provider.script("submit", loses())
    stage.provider.script("find", BEFORE_IT_LEFT, AFTER_IT_ARRIVED)
    job_id = stage.new_job()
    stage.submit(job_id)
    for _ in range(2):
        clock.advance(MINUTE)
        die(lambda: submit_job(stage.runtime, job_id))

    stage.live(MINUTE)

    assert stage.job(job_id)["provider_job_id"] == "p-1"
    assert stage.attempt(job_id)["asks"] == 0


@pytest.mark.parametrize("effect", [BEFORE_IT_LEFT, AFTER_IT_ARRIVED])
def test_a_kill_around_a_poll_is_repeated(stage: Stage, effect: Effect) -> None:
    job_id, run = stage.running_job()
    stage.provider.finish(run)
    stage.provider.script("status", effect)
    stage.make_due(job_id, "poll")
    die(lambda: poll_job(stage.runtime, job_id))

    stage.live(timedelta(minutes=2), until=job_id)

    assert stage.job(job_id)["state"] == "succeeded"
    assert stage.events(job_id).count("job.succeeded") == 1


def test_a_poll_answer_that_could_not_be_written_is_fetched_again(stage: Stage) -> None:
    job_id, run = stage.running_job()
    stage.provider.finish(run)
    stage.make_due(job_id, "poll")
    break_write(stage, 2, Unavailable("gone"))
    die(lambda: poll_job(stage.runtime, job_id))

    stage.live(timedelta(minutes=2), until=job_id)

    assert stage.history(job_id) == ["pending>succeeded by poll"]


@pytest.mark.parametrize("effect", [BEFORE_IT_LEFT, AFTER_IT_ARRIVED])
def test_a_kill_around_a_cancel_is_repeated(stage: Stage, effect: Effect) -> None:
    job_id, run = stage.running_job()
    stage.provider.script("cancel", effect)
    request_cancel(stage.runtime, job_id)
    die(lambda: cancel_run(stage.runtime, job_id))

    stage.live(timedelta(minutes=2), until=job_id)

    assert stage.job(job_id)["state"] == "canceled"
    assert stage.provider.runs[run].state is JobState.CANCELED
    assert stage.events(job_id).count("job.canceled") == 1


@pytest.mark.parametrize("kind", ["submit", "poll", "cancel"])
def test_a_job_that_kills_its_worker_every_time_becomes_a_dead_letter(stage: Stage, kind: str) -> None:
    """F58: three starts, counted before the work begins and so surviving the worker; other jobs go on."""
    killer = stage.new_job() if kind == "submit" else stage.running_job()[0]
    work = {"submit": submit_job, "poll": poll_job, "cancel": cancel_run}[kind]
    if kind == "cancel":
        request_cancel(stage.runtime, killer)
    elif kind == "poll":
        stage.make_due(killer, "poll")
    method = {"submit": "submit", "poll": "status", "cancel": "cancel"}[kind]
    stage.provider.always(method, raises(Killed()))

    for start in range(MAX_STARTS):
        die(lambda: work(stage.runtime, killer))
        stage.clock.advance(LEASE * 2**start - timedelta(seconds=1))
        assert str(work(stage.runtime, killer)) == "nothing"  # the waits grow
        stage.clock.advance(1)
    assert str(work(stage.runtime, killer)) == "nothing"
    stage.provider.heal(method)

    (letter,) = stage.letters()
    assert (letter["kind"], letter["ref"], letter["attempts"]) == (kind, killer, MAX_STARTS)
    assert stage.job(killer)[f"next_{kind}_at"] is None
    healthy, _run = stage.running_job()
    assert stage.job(healthy)["provider_job_id"] is not None


def test_a_worker_killed_now_and_then_counts_for_nothing(stage: Stage) -> None:
    job_id, run = stage.running_job()
    for _ in range(3):
        stage.provider.script("status", BEFORE_IT_LEFT, None)
        stage.make_due(job_id, "poll")
        die(lambda: poll_job(stage.runtime, job_id))
        stage.end_leases()
        assert stage.poll(job_id) == "same"

    assert stage.job(job_id)["starts"] == 0
    assert stage.letters() == []
    stage.provider.finish(run)
    assert stage.poll(job_id) == "applied"
