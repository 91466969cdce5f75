"""The answer to a submit is lost, at each class of provider: one run is billed, or a person is asked.

The real services talk to the real simulator over HTTP, and its webhooks come in through the real receiver.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from homing.simulator.faults import NO_FAULTS, Fault, Faults
from homing.simulator.run import Status
from jobs.clock import FakeClock
from jobs.services.observe import DOUBLE_SUBMIT
from jobs.services.submitting.plan import MAX_ASKS
from jobs.services.submitting.submission import submit_job
from jobs.storage.database import Database
from jobs.storage.schema import extra_runs, job_attempts
from tests.fakes.arena import INPUT, LAG, Arena, an_arena
from tests.fakes.outages import BreaksOnce
from tests.fakes.provider import Killed

SECONDS = timedelta(seconds=1)
MINUTES = timedelta(minutes=1)
DAYS = timedelta(days=1)
LOST = Faults(submit=Fault.LOST_ANSWER)
LOST_AND_SILENT = Faults(submit=Fault.LOST_ANSWER, webhook=Fault.DROPPED)


@dataclass(frozen=True)
class Kind:
    """A class of provider, and whether it can tell us of a run whose answer we did not get."""

    name: str
    flags: dict[str, Any]
    tells: bool
    proves_absence: bool

    def __str__(self) -> str:
        return self.name


KINDS = [
    Kind("a key that replays", {"idempotency": "replay", "search": False}, tells=True, proves_absence=True),
    Kind("a key that replays, and a search", {"idempotency": "replay", "search": True}, True, True),
    Kind("a key that rejects, and a search", {"idempotency": "reject", "search": True}, True, True),
    Kind("a key that rejects", {"idempotency": "reject", "search": False}, tells=False, proves_absence=True),
    Kind("a search", {"idempotency": "none", "search": True}, tells=True, proves_absence=False),
    Kind("nothing but the callback's token", {"idempotency": "none", "search": False}, False, False),
]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=str)


def new_job(arena: Arena) -> str:
    far = arena.stage.clock.now() + 9 * DAYS
    return arena.stage.new_job(input=INPUT, deadline_at=far, next_alarm_at=far)


def kill_at_write(arena: Arena, number: int) -> Callable[[str], None]:
    """The process dies right before its nth commit of a submit."""

    def die(job_id: str) -> None:
        runtime = arena.stage.runtime
        runtime.database = BreaksOnce(arena.stage.database, nth=number, error=Killed())  # type: ignore[assignment]
        with pytest.raises(Killed):
            submit_job(runtime, job_id)
        runtime.database = arena.stage.database

    return die


def kill_before_sending(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """The process dies between the commit of ``sending_at`` and the request."""

    def die(job_id: str) -> None:
        def killed(*_request: Any, **_named: Any) -> None:
            raise Killed

        adapter = arena.stage.runtime.provider("renders").adapter
        with monkeypatch.context() as patch:
            patch.setattr(adapter, "submit", killed)
            with pytest.raises(Killed):
                submit_job(arena.stage.runtime, job_id)

    return die


def check_one_run_or_a_person(arena: Arena, job_id: str, kind: Kind) -> None:
    """I13: what was billed is one run; it is the job's, or a person was asked."""
    (run,) = arena.runs
    job = arena.stage.job(job_id)
    if kind.tells:
        assert (job["provider_job_id"], job["review_reason"]) == (run.id, None)
    else:
        assert (job["provider_job_id"], job["review_reason"]) == (None, "ambiguous_submit")
    assert arena.stage.letters() == []
    assert arena.stage.attempt(job_id)["outcome"] == ("accepted" if kind.tells else "unknown")


@pytest.mark.invariant("I13")
@each_kind
def test_a_lost_answer_ends_in_one_run_or_with_a_person(database: Database, clock: FakeClock, kind: Kind) -> None:
    """F30 a, d."""
    with an_arena(database, clock, faults=LOST_AND_SILENT, **kind.flags) as arena:
        job_id = new_job(arena)

        arena.stage.live(5 * MINUTES)

        check_one_run_or_a_person(arena, job_id, kind)


@pytest.mark.invariant("I13")
@each_kind
def test_a_kill_between_the_answer_and_our_commit_ends_the_same_way(
    database: Database, clock: FakeClock, kind: Kind
) -> None:
    """F30 b: the provider said 201 to a process that died before it could write that down."""
    with an_arena(database, clock, **kind.flags) as arena:
        job_id = new_job(arena)
        kill_at_write(arena, 2)(job_id)
        assert len(arena.runs) == 1
        assert arena.stage.attempt(job_id)["sending_at"] is not None

        arena.stage.live(5 * MINUTES)

        if kind.tells:
            check_one_run_or_a_person(arena, job_id, kind)
        assert len(arena.runs) == 1
        assert (arena.stage.job(job_id)["review_reason"] is None) == kind.tells


@each_kind
def test_a_kill_between_our_commit_and_the_request_sends_at_most_once(
    database: Database, clock: FakeClock, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing had left, and only a key the provider honours makes it safe to find that out by sending."""
    with an_arena(database, clock, **kind.flags) as arena:
        job_id = new_job(arena)
        kill_before_sending(arena, monkeypatch)(job_id)

        arena.stage.live(5 * MINUTES)

        assert len(arena.runs) == (1 if kind.proves_absence else 0)
        review = None if kind.proves_absence else "ambiguous_submit"
        assert arena.stage.job(job_id)["review_reason"] == review


def test_a_kill_before_the_first_commit_is_as_if_nothing_had_been(database: Database, clock: FakeClock) -> None:
    with an_arena(database, clock, idempotency="none", search=False) as arena:
        job_id = new_job(arena)
        kill_at_write(arena, 1)(job_id)
        assert arena.runs == []

        arena.stage.live(MINUTES)

        assert arena.stage.job(job_id)["provider_job_id"] == arena.runs[0].id


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.flags["search"]], ids=str)
def test_a_list_that_lags_is_asked_again(database: Database, clock: FakeClock, kind: Kind) -> None:
    """F30: an empty answer permits nothing; the run shows up within the asks that were planned for it."""
    with an_arena(database, clock, faults=LOST_AND_SILENT, search_lag=LAG, **kind.flags) as arena:
        job_id = new_job(arena)

        arena.stage.live(5 * MINUTES)

        check_one_run_or_a_person(arena, job_id, kind)
        assert arena.stage.attempt(job_id)["asks"] <= MAX_ASKS


@pytest.mark.parametrize("idempotency", ["none", "reject"])
def test_a_list_that_lags_for_long_calls_a_person_and_then_ends_the_review(
    database: Database, clock: FakeClock, idempotency: str
) -> None:
    lag = 30 * MINUTES
    with an_arena(
        database, clock, faults=LOST_AND_SILENT, search_lag=lag, idempotency=idempotency, search=True
    ) as arena:
        job_id = new_job(arena)

        arena.stage.live(5 * MINUTES)
        assert arena.stage.job(job_id)["review_reason"] == "ambiguous_submit"
        arena.stage.live(lag + 5 * MINUTES)

        assert [run.id for run in arena.runs] == [arena.stage.job(job_id)["provider_job_id"]]
        assert arena.stage.job(job_id)["review_reason"] is None


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.tells], ids=str)
def test_the_callbacks_token_ends_the_review(database: Database, clock: FakeClock, kind: Kind) -> None:
    """F31: nobody could be asked; the run itself tells, by the token in its callback URL."""
    with an_arena(database, clock, faults=LOST, **kind.flags) as arena:
        job_id = new_job(arena)
        arena.stage.live(MINUTES)
        assert arena.stage.job(job_id)["review_reason"] == "ambiguous_submit"

        arena.complete(arena.runs[0])

        job = arena.stage.job(job_id)
        assert (job["state"], job["provider_job_id"], job["review_reason"]) == ("succeeded", arena.runs[0].id, None)
        assert len(arena.runs) == 1


def test_a_key_beyond_its_window_is_not_sent_again(database: Database, clock: FakeClock) -> None:
    """The provider has forgotten the key: the same request would be a new run."""
    entry = {"idempotency_window": timedelta(minutes=10)}
    flags: dict[str, Any] = {"idempotency": "replay", "search": False, **entry}
    with an_arena(database, clock, faults=NO_FAULTS, entry=entry, **flags) as arena:
        job_id = new_job(arena)
        kill_at_write(arena, 2)(job_id)
        clock.advance(11 * MINUTES)

        arena.stage.live(5 * MINUTES)

        assert len(arena.runs) == 1
        assert arena.stage.job(job_id)["review_reason"] == "ambiguous_submit"


def test_a_provider_that_breaks_its_promise_is_found_out_and_the_extra_run_stopped(
    database: Database, clock: FakeClock
) -> None:
    """F32: it says that keys replay, and bills the retry; the lost run calls back with our token."""
    promises = {"idempotency": "replay", "search": True}
    with an_arena(database, clock, faults=LOST, promises=promises, idempotency="none", search=True) as arena:
        job_id = new_job(arena)
        arena.stage.live(10 * SECONDS)
        lost, answered = arena.runs
        assert arena.stage.job(job_id)["provider_job_id"] == answered.id

        arena.begin(lost)
        (letter,) = arena.stage.letters(DOUBLE_SUBMIT)
        assert letter["ref"] == f"{job_id}/{lost.id}"
        arena.stage.live(2 * MINUTES)

        assert (lost.status, answered.status) == (Status.CANCELED, Status.QUEUED)
        (extra,) = arena.stage.rows(extra_runs)
        assert (extra["provider_job_id"], extra["settled"], extra["state"]) == (lost.id, "ended", "canceled")
        arena.complete(answered)
        assert arena.stage.job(job_id)["state"] == "succeeded"
        assert len(arena.stage.rows(job_attempts, job_id=job_id)) == 1
