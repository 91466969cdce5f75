"""What the ends of jobs teach: how long they take, and whether their webhooks arrive."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.clock import FakeClock
from jobs.core.errors import Stale
from jobs.core.forecast import MAX_SAMPLES, MIN_SAMPLES
from jobs.core.policy import Policy
from jobs.core.states import JobState
from jobs.services.accounts.overview import read_accounts
from jobs.services.creation import NewJob, create_job
from jobs.services.learning import learn
from jobs.storage.account_schema import durations, provider_standings
from jobs.storage.artifacts import artifact_rows
from jobs.storage.counters import raise_counter
from jobs.storage.database import Database, Transaction
from jobs.storage.learned import put_samples, put_standing
from jobs.storage.schema import artifacts, outbox
from tests.factories import PROVIDER, TENANT, seen
from tests.fakes.stage import Stage, a_stage

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


@pytest.fixture
def stage(database: Database, clock: FakeClock) -> Stage:
    return a_stage(database, clock)


def end_by_webhook(stage: Stage, after: timedelta, state: JobState = JobState.SUCCEEDED, **columns: object) -> str:
    job_id, run = stage.running_job(**columns)
    stage.clock.advance(after)
    with stage.database.write() as tx:
        stage.runtime.observer.observe(tx, job_id, seen(state, provider_job_id=run, at=tx.now))
    return job_id


def end_by_poll(stage: Stage, *, seen_open_at: timedelta, found_at: timedelta) -> str:
    job_id, run = stage.running_job()
    if seen_open_at:
        stage.clock.advance(seen_open_at)
        stage.poll(job_id)
    stage.clock.advance(found_at - seen_open_at)
    stage.provider.finish(run)
    stage.poll(job_id)
    return job_id


def learn_all(stage: Stage) -> int:
    stage.clock.advance(10)
    return learn(stage.runtime, 500)


def samples(stage: Stage, model: str = "video") -> list[float]:
    rows = stage.rows(durations, model=model)
    return list(rows[0]["samples_s"]) if rows else []


def told(stage: Stage) -> list[dict[str, object]]:
    return [row for row in stage.rows(outbox) if row["type"].startswith("provider.")]


def test_an_end_that_a_webhook_told_is_exact(stage: Stage) -> None:
    end_by_webhook(stage, 90 * SECOND, model="video")
    end_by_webhook(stage, 30 * SECOND, JobState.FAILED, model="video")

    learn_all(stage)

    assert samples(stage) == [90.0, 30.0]


def test_an_end_that_a_poll_found_lies_somewhere_since_the_last_one(stage: Stage) -> None:
    """Taken for the end itself, each poll would move the next ones further back."""
    for _ in range(40):
        end_by_poll(stage, seen_open_at=60 * SECOND, found_at=120 * SECOND)

    learn_all(stage)

    ends = samples(stage, model="")
    assert all(60 <= end <= 120 for end in ends)
    assert 80 < sum(ends) / len(ends) < 100
    assert len(set(ends)) > 30


def test_the_time_its_files_take_is_not_the_jobs(stage: Stage) -> None:
    """``finish = "on_artifacts"``: the success was told when its files were named, and ends the job later."""
    job_id, run = stage.running_job(model="video")
    stage.clock.advance(90)
    with stage.database.write() as tx:
        link = {"url": "https://files.example/1", "content_type": None, "size_bytes": None, "sha256": None}
        row = stage.job(job_id)
        tx.execute(artifacts.insert(), artifact_rows(row, [{**link, "expires_at": None}], attempt=1, at=tx.now))
    stage.clock.advance(60)
    with stage.database.write() as tx:
        stage.runtime.observer.observe(tx, job_id, seen(JobState.SUCCEEDED, provider_job_id=run, at=tx.now))

    learn_all(stage)

    assert samples(stage) == [90.0]


def test_kinds_of_job_are_learned_apart(stage: Stage) -> None:
    end_by_webhook(stage, 9 * SECOND, model="image")
    end_by_webhook(stage, 90 * SECOND, model="video")

    learn_all(stage)

    assert (samples(stage, "image"), samples(stage, "video")) == ([9.0], [90.0])


def test_what_says_nothing_about_durations_is_left_out(stage: Stage) -> None:
    """A run that was adopted began before us, a cancel ends when somebody wants it to."""
    end_by_webhook(stage, 90 * SECOND, JobState.CANCELED, model="video")
    run = stage.provider.begin(key="k", token="t").id
    job_id = stage.new_job(adopt=run, model="video")
    stage.submit(job_id)
    stage.provider.finish(run)
    stage.poll(job_id)

    learn_all(stage)

    assert samples(stage) == []


def test_each_end_is_learned_once(stage: Stage) -> None:
    end_by_webhook(stage, 90 * SECOND, model="video")

    assert learn_all(stage) == 1
    assert learn_all(stage) == 0
    assert samples(stage) == [90.0]


def test_only_the_newest_are_kept(stage: Stage) -> None:
    with stage.database.write() as tx:
        put_samples(tx, PROVIDER, "video", [1.0] * MAX_SAMPLES)
    end_by_webhook(stage, 90 * SECOND, model="video")

    learn_all(stage)

    assert (len(samples(stage)), samples(stage)[-1]) == (MAX_SAMPLES, 90.0)


def test_a_row_that_may_not_be_the_last_of_its_moment_waits(stage: Stage) -> None:
    end_by_webhook(stage, 90 * SECOND, model="video")

    assert learn(stage.runtime, 500) == 0


def test_two_learners_at_once_count_an_end_once(stage: Stage) -> None:
    end_by_webhook(stage, 90 * SECOND, model="video")
    stage.clock.advance(10)

    def another_comes_first(tx: Transaction) -> None:
        raise_counter(tx, "learned_transition", 10_000)

    assert learn(stage.runtime, 500, premise=another_comes_first) == 0
    assert samples(stage) == []


def test_a_sweeper_that_was_overtaken_writes_nothing(stage: Stage) -> None:
    def overtaken(_tx: Transaction) -> None:
        raise Stale("another one is at it")

    end_by_webhook(stage, 90 * SECOND, model="video")
    stage.clock.advance(10)
    with pytest.raises(Stale):
        learn(stage.runtime, 500, premise=overtaken)

    assert samples(stage) == []


# What follows from it ----------------------------------------------------------------------------------------


def give_history(stage: Stage, *, model: str = "video", around_s: float = 600.0) -> None:
    with stage.database.write() as tx:
        put_samples(tx, PROVIDER, model, [around_s + number % 60 for number in range(200)])


def test_a_job_nobody_said_anything_about_is_expected_when_others_have_ended(stage: Stage) -> None:
    give_history(stage)
    created = create_job(stage.runtime, tenant=TENANT, body=NewJob(PROVIDER, {"model": "video"}), key=None)

    job = stage.job(created.job["id"])

    assert job["model"] == "video"
    assert 655 < (job["expected_at"] - job["created_at"]).total_seconds() < 660
    assert job["review_at"] - job["created_at"] == 3 * (job["expected_at"] - job["created_at"])
    assert job["expected_s"] is None


def test_what_the_client_or_the_entry_says_counts_more(database: Database, clock: FakeClock) -> None:
    stage = a_stage(database, clock, policy=Policy(expected=5 * MINUTE))
    give_history(stage)
    bodies = [NewJob(PROVIDER, {"model": "video"}), NewJob(PROVIDER, {"model": "video"}, expected=7 * MINUTE)]

    made = [create_job(stage.runtime, tenant=TENANT, body=body, key=None).job["id"] for body in bodies]

    spans = [stage.job(job_id)["expected_at"] - stage.job(job_id)["created_at"] for job_id in made]
    assert spans == [5 * MINUTE, 7 * MINUTE]


def test_too_short_a_history_expects_nothing(stage: Stage) -> None:
    with stage.database.write() as tx:
        put_samples(tx, PROVIDER, "video", [90.0] * (MIN_SAMPLES - 1))
    created = create_job(stage.runtime, tenant=TENANT, body=NewJob(PROVIDER, {"model": "video"}), key=None)

    assert stage.job(created.job["id"])["expected_at"] is None


def test_jobs_are_polled_where_others_have_ended(stage: Stage) -> None:
    give_history(stage)
    job_id, run = stage.running_job(model="video", deadline_at=stage.clock.now() + timedelta(hours=9))
    assert stage.job(job_id)["next_poll_at"] - stage.clock.now() > 8 * MINUTE

    stage.live(10 * MINUTE)
    stage.provider.finish(run)
    stage.live(10 * MINUTE, until=job_id)

    assert stage.job(job_id)["state"] == "succeeded"
    assert stage.job(job_id)["finished_at"] - stage.job(job_id)["submitted_at"] < 12 * MINUTE
    assert stage.provider.count("status") <= 5


def test_a_job_longer_than_all_before_it_is_polled_on(stage: Stage) -> None:
    give_history(stage, around_s=60.0)
    job_id, run = stage.running_job(model="video", deadline_at=stage.clock.now() + timedelta(hours=9))

    stage.live(timedelta(hours=1))
    before = stage.provider.count("status")
    stage.provider.finish(run)
    stage.live(11 * MINUTE, until=job_id)

    assert stage.job(job_id)["state"] == "succeeded"
    assert 10 < before < 40


# Webhooks that get lost --------------------------------------------------------------------------------------


def lose_webhooks(stage: Stage, count: int = 10) -> None:
    for _ in range(count):
        end_by_poll(stage, seen_open_at=0 * SECOND, found_at=4 * SECOND)


def test_a_provider_whose_webhooks_get_lost_is_told_once(stage: Stage) -> None:
    lose_webhooks(stage)
    learn_all(stage)
    lose_webhooks(stage)
    learn_all(stage)

    (event,) = told(stage)
    assert event["type"] == "provider.webhooks_degraded"
    assert event["data"] == {"provider": PROVIDER, "poll_share": 1.0, "jobs": 10}
    assert stage.rows(provider_standings)[0]["degraded_at"] is not None


def test_it_recovers_when_they_arrive_again(stage: Stage) -> None:
    lose_webhooks(stage)
    learn_all(stage)
    for _ in range(20):
        end_by_webhook(stage, 4 * SECOND)
    learn_all(stage)

    assert [event["type"] for event in told(stage)] == ["provider.webhooks_degraded", "provider.webhooks_recovered"]
    assert stage.rows(provider_standings)[0]["degraded_at"] is None


def test_meanwhile_its_jobs_are_polled_twice_as_often(database: Database, clock: FakeClock) -> None:
    stage = a_stage(database, clock)
    stage.live(30 * MINUTE)
    job_id, _run = stage.running_job(deadline_at=clock.now() + timedelta(hours=9))
    stage.live(30 * MINUTE)
    healthy = stage.provider.count("status")
    with database.write() as tx:
        put_standing(tx, PROVIDER, recent=[], degraded_at=tx.now)
    clock.advance(MINUTE)

    stage.live(30 * MINUTE)

    assert stage.job(job_id)["state"] == "pending"
    assert stage.provider.count("status") - healthy > 1.5 * healthy


def test_how_an_account_does_is_shown(stage: Stage) -> None:
    lose_webhooks(stage, 2)
    end_by_webhook(stage, 4 * SECOND, JobState.FAILED)
    end_by_webhook(stage, 4 * SECOND)
    learn_all(stage)

    (shown,) = read_accounts(stage.runtime, tenant=TENANT)["data"]

    assert (shown["webhook_share"], shown["error_rate"]) == (0.5, 0.25)
    assert shown["heal_s"] == {"median": 4.0, "worst": 4.0}
    assert shown["webhooks_degraded_at"] is None
