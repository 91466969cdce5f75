"""The one door against real databases: what is written, together, and only once."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.core.decisions import Verdict
from jobs.core.errors import NotFound, Stale
from jobs.core.observations import Observation, Progress, Source
from jobs.core.states import JobState
from jobs.services.observe import DOUBLE_SUBMIT, Observer
from jobs.storage.attempts import get_attempt
from jobs.storage.database import Database
from jobs.storage.history import list_transitions
from jobs.storage.jobs import get_job, update_bookkeeping, update_job
from jobs.storage.schema import dead_letters, job_transitions, outbox
from tests.factories import T, an_observer, new_job, seen


@pytest.fixture
def observer() -> Observer:
    return an_observer()


def observe(database: Database, observer: Observer, job_id: str, *observations: Observation) -> list[Verdict]:
    verdicts = []
    for observation in observations:
        with database.write() as tx:
            verdicts.append(observer.observe(tx, job_id, observation).verdict)
    return verdicts


def job_of(database: Database, job_id: str) -> Mapping[str, Any]:
    with database.read() as tx:
        return get_job(tx, job_id)


def events_of(database: Database, job_id: str) -> list[tuple[int, str]]:
    statement = sa.select(outbox.c.sequence, outbox.c.type).where(outbox.c.job_id == job_id).order_by(outbox.c.sequence)
    with database.read() as tx:
        return [(row["sequence"], row["type"]) for row in tx.rows(statement)]


def count(database: Database, table: sa.Table) -> int:
    with database.read() as tx:
        return tx.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()


def test_a_success_writes_state_history_events_attempt_and_due_times_together(
    database: Database, observer: Observer
) -> None:
    job = new_job(database)

    verdicts = observe(database, observer, job["id"], seen(JobState.SUCCEEDED, output={"frames": 24}))

    assert verdicts == [Verdict.APPLIED]
    after = job_of(database, job["id"])
    assert (after["state"], after["version"], after["output"]) == ("succeeded", 2, {"frames": 24})
    assert after["provider_job_id"] == "p-1"
    assert {after[f"next_{kind}_at"] for kind in ("submit", "poll", "cancel", "alarm")} == {None}
    assert events_of(database, job["id"]) == [(1, "job.submitted"), (2, "job.succeeded")]
    with database.read() as tx:
        (step,) = list_transitions(tx, job["id"])
        attempt = get_attempt(tx, job["id"], 1)
    assert (step["from_state"], step["to_state"], step["applied"], step["source"]) == (
        "pending",
        "succeeded",
        True,
        "webhook",
    )
    assert (attempt["provider_job_id"], attempt["outcome"]) == ("p-1", "accepted")


def test_an_acceptance_plans_the_first_poll_and_takes_the_submit_off_the_list(
    database: Database, observer: Observer
) -> None:
    job = new_job(database)

    observe(database, observer, job["id"], seen(source=Source.SUBMIT))

    after = job_of(database, job["id"])
    assert after["next_submit_at"] is None
    assert 0.5 <= (after["next_poll_at"] - T).total_seconds() <= 1.0


def test_the_event_tells_the_state_that_was_committed_with_it(database: Database, observer: Observer) -> None:
    """F70: the payload's state and version equal the committed ones, step by step."""
    job = new_job(database)
    with database.write() as tx:
        observer.observe_many(tx, [(job["id"], seen(JobState.RUNNING)), (job["id"], seen(JobState.SUCCEEDED))])

    with database.read() as tx:
        rows = tx.rows(sa.select(outbox).order_by(outbox.c.sequence))
    told = [(row["type"], row["data"]["job"]["state"], row["data"]["job"]["version"]) for row in rows]
    assert told == [("job.submitted", "running", 2), ("job.started", "running", 2), ("job.succeeded", "succeeded", 3)]
    assert job_of(database, job["id"])["version"] == 3
    assert all("input" not in row["data"]["job"] for row in rows)


@pytest.mark.invariant("I5")
def test_a_rollback_leaves_no_event_no_history_and_no_state(database: Database, observer: Observer) -> None:
    """F60d, F70: no task and no outgoing event exists for what never became true."""
    job = new_job(database)

    with pytest.raises(RuntimeError, match="power cut"), database.write() as tx:  # noqa: PT012
        observer.observe(tx, job["id"], seen(JobState.SUCCEEDED))
        raise RuntimeError("power cut")

    assert job_of(database, job["id"]) == job
    assert (count(database, outbox), count(database, job_transitions)) == (0, 0)


@pytest.mark.invariant("I5")
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(story=st.lists(st.sampled_from([None, *JobState]), min_size=1, max_size=8), cut=st.integers(0, 8))
def test_each_applied_step_has_one_history_row_and_its_event_however_the_story_is_batched(
    database: Database, story: list[JobState | None], cut: int
) -> None:
    observer, job = an_observer(), new_job(database, provider_job_id=None)
    run = job["id"]  # a run of its own, since runs are unique per provider
    observations = [(job["id"], seen(state, provider_job_id=run)) for state in story]

    for batch in (observations[:cut], observations[cut:]):
        with database.write() as tx:
            observer.observe_many(tx, batch)

    with database.read() as tx:
        history = [row for row in list_transitions(tx, job["id"]) if row["applied"]]
    told = [event for _, event in events_of(database, job["id"]) if event in _STEP_EVENTS.values()]
    assert [_STEP_EVENTS[row["to_state"]] for row in history] == told
    assert [sequence for sequence, _ in events_of(database, job["id"])] == list(
        range(1, job_of(database, job["id"])["event_count"] + 1)
    )


_STEP_EVENTS = {
    "running": "job.started",
    "succeeded": "job.succeeded",
    "failed": "job.failed",
    "canceled": "job.canceled",
}


def test_poll_and_webhook_released_together_make_one_transition(database: Database, observer: Observer) -> None:
    """F33a."""
    ids = [new_job(database)["id"] for _ in range(10)]
    for job_id in ids:
        barrier = threading.Barrier(2)

        def finish(source: Source, job_id: str = job_id, barrier: threading.Barrier = barrier) -> None:
            barrier.wait()
            observe(database, observer, job_id, seen(JobState.SUCCEEDED, source=source, provider_job_id=job_id))

        threads = [threading.Thread(target=finish, args=(source,)) for source in (Source.POLL, Source.WEBHOOK)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    for job_id in ids:
        assert events_of(database, job_id) == [(1, "job.submitted"), (2, "job.succeeded")]
        with database.read() as tx:
            assert len(list_transitions(tx, job_id)) == 1


def test_a_submit_answer_that_comes_after_the_end_stores_the_id_and_nothing_else(
    database: Database, observer: Observer
) -> None:
    """F33b: p-1 stored, status still succeeded."""
    job = new_job(database)
    observe(database, observer, job["id"], seen(JobState.SUCCEEDED, provider_job_id=None, output="x"))

    observe(database, observer, job["id"], seen(source=Source.SUBMIT))

    after = job_of(database, job["id"])
    assert (after["state"], after["provider_job_id"], after["output"]) == ("succeeded", "p-1", "x")
    assert after["next_poll_at"] is None


def test_a_poll_answer_older_than_the_webhook_is_dropped(database: Database, observer: Observer) -> None:
    """F33c."""
    job = new_job(database)

    verdicts = observe(
        database, observer, job["id"], seen(JobState.SUCCEEDED), seen(JobState.RUNNING, source=Source.POLL)
    )

    assert verdicts == [Verdict.APPLIED, Verdict.OLDER]
    assert job_of(database, job["id"])["state"] == "succeeded"


def test_a_second_run_under_one_attempt_becomes_a_dead_letter_once(database: Database, observer: Observer) -> None:
    job = new_job(database)
    second = seen(JobState.SUCCEEDED, provider_job_id="p-2")

    verdicts = observe(database, observer, job["id"], seen(JobState.RUNNING), second, second)

    assert verdicts[1:] == [Verdict.OTHER_RUN, Verdict.OTHER_RUN]
    assert job_of(database, job["id"])["state"] == "running"
    with database.read() as tx:
        (letter,) = tx.rows(sa.select(dead_letters))
    assert (letter["kind"], letter["ref"]) == (DOUBLE_SUBMIT, f"{job['id']}/p-2")


def test_a_run_that_belongs_to_another_job_is_never_taken(database: Database, observer: Observer) -> None:
    first, second = new_job(database), new_job(database)
    observe(database, observer, first["id"], seen(JobState.RUNNING))

    verdicts = observe(database, observer, second["id"], seen(JobState.SUCCEEDED))

    assert verdicts == [Verdict.OTHER_RUN]
    assert job_of(database, second["id"])["state"] == "pending"
    assert told_of_a_foreign_run(database, second["id"]) == [f"run p-1 belongs to job {first['id']}, attempt 1"] * 2


def test_whose_a_foreign_run_is_stays_within_a_tenant(database: Database, observer: Observer) -> None:
    """Tenants may share an account; history and dead letters of one name no job of another."""
    others, mine = new_job(database, tenant="globex"), new_job(database)
    observe(database, observer, others["id"], seen(JobState.RUNNING))

    observe(database, observer, mine["id"], seen(JobState.SUCCEEDED))

    assert told_of_a_foreign_run(database, mine["id"]) == ["run p-1 belongs to another tenant's job"] * 2


def told_of_a_foreign_run(database: Database, job_id: str) -> list[str]:
    """By the job's history, and by its dead letter."""
    with database.read() as tx:
        (step,) = list_transitions(tx, job_id)
        (letter,) = tx.rows(sa.select(dead_letters).where(dead_letters.c.job_id == job_id))
    return [step["reason"], letter["reason"]]


def test_a_late_id_of_a_job_we_gave_up_plans_the_cancel_of_its_run(database: Database, observer: Observer) -> None:
    job = new_job(database)
    given_up = seen(JobState.FAILED, source=Source.DEADLINE, attempt=None, provider_job_id=None)

    observe(database, observer, job["id"], given_up, seen(source=Source.SUBMIT))

    after = job_of(database, job["id"])
    assert (after["state"], after["next_cancel_at"]) == ("failed", T)


def test_a_conflict_plans_one_more_read_of_the_provider(database: Database, observer: Observer) -> None:
    job = new_job(database)

    verdicts = observe(database, observer, job["id"], seen(JobState.SUCCEEDED), seen(JobState.FAILED))

    assert verdicts[1] is Verdict.CONFLICT
    after = job_of(database, job["id"])
    assert (after["next_poll_at"], after["review_reason"]) == (T, "conflicting_outcome")


def test_progress_grows_the_version_without_an_event(database: Database, observer: Observer) -> None:
    job = new_job(database)

    observe(
        database,
        observer,
        job["id"],
        seen(JobState.RUNNING),
        seen(JobState.RUNNING, progress=Progress(0.5, "half")),
        seen(JobState.RUNNING, progress=Progress(0.5, "half")),
    )

    after = job_of(database, job["id"])
    assert (after["version"], after["progress"]) == (3, {"fraction": 0.5, "message": "half"})
    assert len(events_of(database, job["id"])) == 2


def test_an_unknown_job_is_not_found_and_nothing_of_the_batch_is_written(
    database: Database, observer: Observer
) -> None:
    job = new_job(database)

    with pytest.raises(NotFound), database.write() as tx:
        observer.observe_many(tx, [(job["id"], seen(JobState.RUNNING)), ("job_none", seen(JobState.RUNNING))])

    assert job_of(database, job["id"]) == job


@pytest.mark.invariant("I7")
def test_a_write_on_a_version_that_is_gone_is_stale_and_changes_nothing(database: Database) -> None:
    job = new_job(database)
    with database.write() as tx:
        update_job(tx, job, {"review_detail": "first"})

    with pytest.raises(Stale), database.write() as tx:
        update_job(tx, job, {"review_detail": "second"})

    assert job_of(database, job["id"])["review_detail"] == "first"


def test_bookkeeping_leaves_the_version_alone(database: Database) -> None:
    job = new_job(database)

    with database.write() as tx:
        assert update_bookkeeping(tx, job["id"], {"poll_count": 3})

    after = job_of(database, job["id"])
    assert (after["poll_count"], after["version"]) == (3, 1)
