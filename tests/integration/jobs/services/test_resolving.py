from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from jobs.broker import SUBMIT
from jobs.clock import FakeClock
from jobs.core.errors import Conflict, NotFound, Unprocessable
from jobs.core.observations import JobError, Source
from jobs.core.states import JobState
from jobs.services.resolving import Action, Resolution, resolve
from jobs.services.runtime import Runtime
from jobs.storage.attempts import get_attempt
from jobs.storage.database import Database
from jobs.storage.history import list_transitions
from jobs.storage.jobs import get_job, lease_jobs, update_bookkeeping
from jobs.storage.letter_filter import LetterFilter
from jobs.storage.listing import list_dead_letters, list_events
from tests.factories import TENANT, T, new_job, seen
from tests.fakes.broker import RecordingBroker
from tests.fakes.runtime import a_runtime


@pytest.fixture
def broker() -> RecordingBroker:
    return RecordingBroker()


@pytest.fixture
def runtime(database: Database, broker: RecordingBroker) -> Runtime:
    return a_runtime(database, broker=broker)


def waiting_job(database: Database, reason: str = "ambiguous_submit", **columns: Any) -> str:
    """A job that waits for a person."""
    review = {"review_reason": reason, "review_detail": "why", "review_since": T}
    return str(new_job(database, **{"next_submit_at": None, **review, **columns})["id"])


def decide(runtime: Runtime, job_id: str, action: Action, **fields: Any) -> Mapping[str, Any]:
    decided = Resolution(action=action, reason="looked at it", by="key_1", **fields)
    return resolve(runtime, job_id, tenant=TENANT, decided=decided)


def row_of(database: Database, job_id: str) -> Mapping[str, Any]:
    with database.read() as tx:
        return get_job(tx, job_id)


def history_of(database: Database, job_id: str) -> list[tuple[str, str, str, bool, str]]:
    with database.read() as tx:
        rows = list_transitions(tx, job_id)
    return [(row["from_state"], row["to_state"], row["source"], row["applied"], row["reason"]) for row in rows]


def event_types(database: Database, job_id: str) -> list[str]:
    from jobs.services.relay import relay

    relay(a_runtime(database))
    with database.read() as tx:
        rows = list_events(tx, tenant=TENANT, with_fleet=False, type_pattern=None, job_id=job_id, after=0, limit=50)
    assert [row["sequence"] for row in rows] == list(range(1, len(rows) + 1))
    return [row["type"] for row in rows]


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELED])
def test_settling_ends_the_job_and_its_review(runtime: Runtime, database: Database, state: JobState) -> None:
    job_id = waiting_job(database)

    job = decide(runtime, job_id, Action.SETTLE, state=state)

    assert (job["state"], job["review"]) == (state, None)
    assert history_of(database, job_id) == [("pending", state, "operator", True, "settle by key_1: looked at it")]
    assert event_types(database, job_id) == [f"job.{state}", "job.review_resolved"]
    assert row_of(database, job_id)["next_alarm_at"] is None


def test_a_job_settled_as_failed_says_why(runtime: Runtime, database: Database) -> None:
    job = decide(runtime, waiting_job(database), Action.SETTLE, state=JobState.FAILED)

    assert job["error"] == {"code": "settled", "message": "looked at it"}


def test_the_run_a_person_found_belongs_to_the_job_and_is_polled(runtime: Runtime, database: Database) -> None:
    woken: list[tuple[str, str]] = []
    runtime.wake_parked = lambda provider, run: woken.append((provider, run))
    job_id = waiting_job(database)

    job = decide(runtime, job_id, Action.SETTLE, state=JobState.RUNNING, provider_job_id="p-7")

    assert (job["state"], job["provider_job_id"], job["review"]) == ("running", "p-7", None)
    assert row_of(database, job_id)["next_poll_at"] is not None
    assert woken == [("renders", "p-7")]
    with database.read() as tx:
        assert get_attempt(tx, job_id, 1)["provider_job_id"] == "p-7"


def test_a_run_named_by_mistake_is_refused_and_raises_no_alarm(runtime: Runtime, database: Database) -> None:
    owner = waiting_job(database)
    decide(runtime, owner, Action.SETTLE, state=JobState.RUNNING, provider_job_id="p-7")
    job_id = waiting_job(database)

    with pytest.raises(Conflict, match=owner):
        decide(runtime, job_id, Action.SETTLE, state=JobState.RUNNING, provider_job_id="p-7")

    with database.read() as tx:
        letters = list_dead_letters(tx, tenant=TENANT, with_fleet=True, wanted=LetterFilter(), before=None, limit=9)
    assert letters == []
    assert row_of(database, job_id)["review_reason"] == "ambiguous_submit"


def test_a_run_of_another_tenant_is_refused_without_naming_its_job(runtime: Runtime, database: Database) -> None:
    owner = waiting_job(database, tenant="globex")
    theirs = Resolution(action=Action.SETTLE, reason="x", by="k", state=JobState.RUNNING, provider_job_id="p-7")
    resolve(runtime, owner, tenant="globex", decided=theirs)

    with pytest.raises(Conflict) as refusal:
        decide(runtime, waiting_job(database), Action.SETTLE, state=JobState.RUNNING, provider_job_id="p-7")

    assert owner not in refusal.value.detail


def test_a_job_that_has_a_run_takes_no_other(runtime: Runtime, database: Database) -> None:
    job_id = waiting_job(database, "overdue", provider_job_id="p-1")

    with pytest.raises(Conflict, match="p-1"):
        decide(runtime, job_id, Action.SETTLE, state=JobState.FAILED, provider_job_id="p-2")


@pytest.mark.parametrize("action", list(Action))
def test_a_job_that_waits_for_nobody_has_nothing_to_resolve(
    runtime: Runtime, database: Database, action: Action
) -> None:
    job_id = str(new_job(database)["id"])

    with pytest.raises(Conflict, match="does not wait"):
        decide(runtime, job_id, action, state=JobState.FAILED if action is Action.SETTLE else None)


@pytest.mark.parametrize("action", [Action.SETTLE, Action.RESUBMIT])
def test_an_end_stays(runtime: Runtime, database: Database, action: Action) -> None:
    job_id = conflicting_job(runtime, database)

    with pytest.raises(Conflict, match="an end stays"):
        decide(runtime, job_id, action, state=JobState.FAILED if action is Action.SETTLE else None)

    assert row_of(database, job_id)["state"] == "succeeded"


def test_a_conflict_is_acknowledged(runtime: Runtime, database: Database) -> None:
    job_id = conflicting_job(runtime, database)

    job = decide(runtime, job_id, Action.ACKNOWLEDGE)

    assert (job["state"], job["review"]) == ("succeeded", None)
    assert job["late_outcome"]["state"] == "failed"
    assert history_of(database, job_id)[-1] == (
        "succeeded",
        "succeeded",
        "operator",
        False,
        "acknowledge by key_1: looked at it",
    )


def test_a_late_outcome_is_acknowledged_without_a_review(runtime: Runtime, database: Database) -> None:
    job_id = str(new_job(database)["id"])
    with database.write() as tx:
        runtime.observer.observe(tx, job_id, seen(JobState.RUNNING))
        runtime.observer.observe(tx, job_id, seen(JobState.FAILED, source=Source.DEADLINE, error=JobError("d", "d")))
        runtime.observer.observe(tx, job_id, seen(JobState.SUCCEEDED))
    assert row_of(database, job_id)["review_reason"] is None

    decide(runtime, job_id, Action.ACKNOWLEDGE)

    assert history_of(database, job_id)[-1][4] == "acknowledge by key_1: looked at it"


def test_a_resubmit_opens_an_attempt_of_its_own(
    runtime: Runtime, database: Database, clock: FakeClock, broker: RecordingBroker
) -> None:
    job_id = waiting_job(database, expected_s=60.0, submit_tries=5)
    with database.read() as tx:
        first = get_attempt(tx, job_id, 1)
    clock.advance(timedelta(hours=2))

    job = decide(runtime, job_id, Action.RESUBMIT)

    with database.read() as tx:
        second = get_attempt(tx, job_id, 2)
    assert second["idempotency_key"] != first["idempotency_key"]
    assert second["token"] != first["token"]
    assert (job["attempts"], job["state"], job["review"], job["provider_job_id"]) == (2, "pending", None, None)
    assert job["deadline_at"] == "2026-01-01T03:00:00.000000Z"
    assert job["expected_at"] == "2026-01-01T02:01:00.000000Z"
    row = row_of(database, job_id)
    assert (row["next_submit_at"], row["submit_tries"], row["next_poll_at"]) == (clock.now(), 0, None)
    assert broker.take(SUBMIT) == [(job_id,)]
    assert event_types(database, job_id) == ["job.review_resolved"]
    assert history_of(database, job_id)[-1][3:] == (False, "resubmit by key_1: looked at it")


def test_a_verdict_about_the_old_attempt_does_not_settle_the_new_one(runtime: Runtime, database: Database) -> None:
    job_id = waiting_job(database)
    decide(runtime, job_id, Action.RESUBMIT)

    with database.write() as tx:
        runtime.observer.observe(tx, job_id, seen(JobState.FAILED))

    assert row_of(database, job_id)["state"] == "pending"


def test_whoever_works_on_the_old_attempt_loses_the_lease(
    runtime: Runtime, database: Database, clock: FakeClock
) -> None:
    job_id = waiting_job(database, "overdue", provider_job_id="p-1")
    with database.write() as tx:
        lease_jobs(tx, [job_id], token="held", until=clock.now() + timedelta(seconds=30))

    decide(runtime, job_id, Action.RESUBMIT)

    row = row_of(database, job_id)
    assert (row["lease_token"], row["lease_until"]) == (None, None)


def test_what_was_adopted_or_is_to_end_is_not_submitted(runtime: Runtime, database: Database) -> None:
    adopted = waiting_job(database, "overdue", adopt="p-1")
    ending = waiting_job(database, "overdue", cancel_requested_at=T)

    for job_id in (adopted, ending):
        with pytest.raises(Conflict):
            decide(runtime, job_id, Action.RESUBMIT)
        assert row_of(database, job_id)["attempt"] == 1


def test_a_poll_asks_for_the_status_of_a_known_run(runtime: Runtime, database: Database, clock: FakeClock) -> None:
    job_id = waiting_job(database, "overdue", provider_job_id="p-1", poll_failures=8)

    job = decide(runtime, job_id, Action.POLL)

    row = row_of(database, job_id)
    assert (row["next_poll_at"], row["poll_failures"], row["next_submit_at"]) == (clock.now(), 0, None)
    assert job["review"] is None


def test_a_poll_asks_whether_an_ambiguous_submit_is_known(
    runtime: Runtime, database: Database, clock: FakeClock
) -> None:
    job_id = waiting_job(database)

    decide(runtime, job_id, Action.POLL)

    assert row_of(database, job_id)["next_submit_at"] == clock.now()


@pytest.mark.parametrize(
    ("action", "fields"),
    [
        (Action.SETTLE, {}),
        (Action.SETTLE, {"state": JobState.PENDING}),
        (Action.POLL, {"state": JobState.FAILED}),
        (Action.RESUBMIT, {"provider_job_id": "p-1"}),
    ],
)
def test_fields_must_fit_the_action(
    runtime: Runtime, database: Database, action: Action, fields: dict[str, Any]
) -> None:
    with pytest.raises(Unprocessable):
        decide(runtime, waiting_job(database), action, **fields)


def test_another_tenants_job_is_not_there(runtime: Runtime, database: Database) -> None:
    decided = Resolution(action=Action.POLL, reason="r", by="key_1")

    with pytest.raises(NotFound):
        resolve(runtime, waiting_job(database), tenant="globex", decided=decided)


def conflicting_job(runtime: Runtime, database: Database) -> str:
    """The provider said succeeded, then failed."""
    job_id = str(new_job(database)["id"])
    with database.write() as tx:
        runtime.observer.observe(tx, job_id, seen(JobState.SUCCEEDED))
        runtime.observer.observe(tx, job_id, seen(JobState.FAILED))
        update_bookkeeping(tx, job_id, {"next_poll_at": None})
    assert row_of(database, job_id)["review_reason"] == "conflicting_outcome"
    return job_id
