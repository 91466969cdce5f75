"""Polling over real databases: only a definite word of the provider moves a job, and nothing stops the asking."""

from __future__ import annotations

import contextlib
import socket
import time
from datetime import timedelta
from itertools import pairwise

import pytest

from jobs.clock import FakeClock
from jobs.core.errors import Transient, UnknownOutcome
from jobs.core.observations import JobError, Progress, Source
from jobs.core.policy import OnDeadline, Policy
from jobs.core.states import JobState
from jobs.net.http import Bounds, HttpClient
from jobs.providers.port import Gone, Report
from jobs.services import polling
from jobs.services.claims import claim_due
from jobs.services.polling import MAX_MISSING_READS, Polled, poll_job, request_poll
from jobs.services.work import MAX_STARTS
from jobs.storage.accounts import find_account
from jobs.storage.database import Database
from jobs.storage.schema import job_transitions
from tests.factories import PROVIDER, T, seen
from tests.fakes.provider import answers, raises, then
from tests.fakes.stage import Stage, a_stage

MINUTE = timedelta(minutes=1)
BLIP = raises(Transient("HTTP 502, <html>"))


@pytest.fixture
def stage(database: Database, clock: FakeClock) -> Stage:
    return a_stage(database, clock)


def webhook(stage: Stage, job_id: str, state: JobState, **facts: object) -> None:
    with stage.database.write() as tx:
        stage.runtime.observer.observe(tx, job_id, seen(state, at=stage.clock.now(), **facts))


def test_a_job_whose_webhook_got_lost_comes_home(stage: Stage) -> None:
    job_id, run = stage.running_job()
    stage.provider.finish(run)

    stage.live(MINUTE, until=job_id)

    job = stage.job(job_id)
    assert (job["state"], job["output"], job["cost"]) == ("succeeded", {"frames": 24}, 0.02)
    assert stage.history(job_id) == ["pending>succeeded by poll"]
    assert (job["next_poll_at"], job["lease_token"], job["starts"]) == (None, None, 0)


def test_waits_grow_to_the_cap_and_keep_their_spread(database: Database, clock: FakeClock) -> None:
    policy = Policy(poll_base=timedelta(seconds=1), poll_cap=timedelta(seconds=8))
    stage = a_stage(database, clock, policy=policy)
    job_id, _run = stage.running_job()
    waits = []
    for _ in range(8):
        due_at = stage.job(job_id)["next_poll_at"]
        waits.append((due_at - clock.now()).total_seconds())
        clock.advance(due_at - clock.now())
        poll_job(stage.runtime, job_id)

    longest = [1, 2, 4, 8, 8, 8, 8, 8]
    assert all(d / 2 <= wait <= d for wait, d in zip(waits, longest, strict=True))
    assert len(set(waits[3:])) == 5


def test_past_its_expected_duration_a_job_is_polled_more_slowly(database: Database, clock: FakeClock) -> None:
    policy = Policy(poll_cap=timedelta(seconds=4), overdue_cap=timedelta(minutes=10))
    stage = a_stage(database, clock, policy=policy)
    job_id, _run = stage.running_job(expected_at=clock.now() + MINUTE, deadline_at=clock.now() + timedelta(days=1))
    stage.write(job_id, poll_count=12)
    clock.advance(timedelta(seconds=50))

    stage.poll(job_id)
    before = stage.job(job_id)["next_poll_at"] - clock.now()
    clock.advance(timedelta(seconds=30))
    stage.poll(job_id)
    after = stage.job(job_id)["next_poll_at"] - clock.now()

    assert before <= timedelta(seconds=4)
    assert timedelta(minutes=5) <= after <= timedelta(minutes=10)


def test_progress_is_written_without_a_step(stage: Stage) -> None:
    job_id, run = stage.running_job()
    stage.provider.set(run, JobState.RUNNING, progress=Progress(0.4))

    stage.poll(job_id)
    version = stage.job(job_id)["version"]
    stage.provider.set(run, JobState.RUNNING, progress=Progress(0.7))
    stage.poll(job_id)

    assert stage.job(job_id)["progress"]["fraction"] == 0.7
    assert stage.job(job_id)["version"] == version + 1
    assert stage.history(job_id) == ["pending>running by poll"]


def test_a_poll_that_learns_nothing_leaves_the_version_alone(stage: Stage) -> None:
    job_id, _run = stage.running_job()
    version = stage.job(job_id)["version"]

    assert stage.poll(job_id) == "same"

    assert stage.job(job_id)["version"] == version


# What is no answer ------------------------------------------------------------------------------------------


def test_blips_are_waited_out(stage: Stage) -> None:
    """F25: five answers that are none, each counted, with growing waits; then the true one."""
    job_id, run = stage.running_job()
    stage.provider.finish(run)
    stage.provider.script("status", *[BLIP] * 5)
    waits = []
    for failures in range(1, 6):
        stage.clock.advance(stage.job(job_id)["next_poll_at"] - stage.clock.now())
        assert str(poll_job(stage.runtime, job_id)) == "transient"
        job = stage.job(job_id)
        assert (job["state"], job["poll_failures"]) == ("pending", failures)
        waits.append(job["next_poll_at"] - stage.clock.now())

    stage.live(MINUTE, until=job_id)

    assert all(later > earlier / 2 for earlier, later in pairwise(waits))
    assert waits[-1] > waits[0] * 4
    assert stage.job(job_id)["state"] == "succeeded"
    assert stage.job(job_id)["poll_failures"] == 0
    assert stage.letters() == []


def test_another_runs_answer_is_never_applied(stage: Stage) -> None:
    """F26: status 200, good shape, another job's id in the body."""
    job_id, _run = stage.running_job()
    stage.provider.script("status", answers(Report("p-77", JobState.SUCCEEDED)))

    assert stage.poll(job_id) == "transient"

    assert stage.job(job_id)["state"] == "pending"
    assert stage.history(job_id, applied=None) == []


def test_a_busy_provider_is_obeyed_by_its_whole_account_and_by_no_other(database: Database, clock: FakeClock) -> None:
    """F27: never sooner than asked; one job's 429 slows that account and no other."""
    stage = a_stage(database, clock, others={"calm": Policy()})
    job_id, _run = stage.running_job()
    other, _ = stage.running_job()
    calm, _ = stage.running_job(provider="calm")
    stage.provider.script("status", raises(Transient("429", retry_after=timedelta(seconds=120))))

    stage.poll(job_id)

    assert stage.job(job_id)["next_poll_at"] >= clock.now() + timedelta(seconds=120)
    assert stage.poll(other) == "nothing"
    assert stage.poll(calm) == "same"
    with stage.database.read() as tx:
        assert find_account(tx, PROVIDER)["blocked_until"] == clock.now() + timedelta(seconds=120)
        assert find_account(tx, "calm")["blocked_until"] is None
    clock.advance(120)
    assert stage.poll(other) == "same"


# Words and runs nobody knows --------------------------------------------------------------------------------


def test_an_unknown_word_calls_a_person_and_is_asked_again(stage: Stage) -> None:
    """F24: neither success nor silently in progress; alerted on first sight."""
    job_id, run = stage.running_job()
    stage.provider.set(run, None, unknown_status="aborted")

    assert stage.poll(job_id) == "unknown_status"
    stage.live(timedelta(minutes=3))

    job = stage.job(job_id)
    assert (job["state"], job["review_reason"], job["review_detail"]) == ("pending", "unknown_status", "aborted")
    assert stage.events(job_id).count("job.review_requested") == 1
    assert stage.provider.count("status") > 3
    stage.provider.finish(run)
    stage.live(timedelta(minutes=3), until=job_id)
    assert stage.job(job_id)["state"] == "succeeded"
    assert stage.job(job_id)["review_reason"] is None


def test_an_unknown_word_until_the_deadline_fails_the_job_with_the_word(database: Database, clock: FakeClock) -> None:
    """F24: at the deadline under ``fail``: ``unknown_status``, the word kept; other jobs go on meanwhile."""
    policy = Policy(on_deadline=OnDeadline.FAIL, deadline=timedelta(hours=1))
    stage = a_stage(database, clock, policy=policy)
    job_id, run = stage.running_job()
    other, other_run = stage.running_job()
    stage.provider.set(run, None, unknown_status="EXPIRED")
    stage.provider.finish(other_run)

    stage.live(timedelta(minutes=65), until=job_id)

    assert stage.job(job_id)["state"] == "failed"
    assert stage.job(job_id)["error"] == {"code": "unknown_status", "message": "EXPIRED"}
    assert stage.job(other)["state"] == "succeeded"


def test_a_run_just_accepted_may_not_be_readable_yet(stage: Stage) -> None:
    job_id, run = stage.running_job()
    stage.provider.finish(run)
    stage.provider.script("status", *[raises(Gone("404"))] * 4)

    stage.live(timedelta(seconds=50), until=job_id)

    assert stage.job(job_id)["state"] == "succeeded"
    assert stage.job(job_id)["missing_reads"] == 0


def test_a_run_that_stays_unknown_fails_its_job(stage: Stage) -> None:
    job_id, run = stage.running_job()
    stage.clock.advance(61)
    stage.provider.runs.pop(run)
    waits = []
    for reads in range(1, MAX_MISSING_READS + 1):
        assert stage.poll(job_id) == "gone"
        job = stage.job(job_id)
        assert job["missing_reads"] == reads
        if job["next_poll_at"] is not None:
            waits.append(job["next_poll_at"] - stage.clock.now())

    assert (job["state"], job["error"]["code"], job["next_poll_at"]) == ("failed", "result_gone", None)
    assert waits[-1] > waits[0]


def test_a_run_that_is_seen_again_is_counted_afresh(stage: Stage) -> None:
    job_id, run = stage.running_job()
    stage.clock.advance(61)
    gone = raises(Gone("404"))
    stage.provider.script("status", gone, gone, gone, gone, None, gone, gone, gone, gone)
    for _ in range(9):
        stage.poll(job_id)

    assert stage.job(job_id)["state"] == "pending"
    assert run in stage.provider.runs


# The end ----------------------------------------------------------------------------------------------------


def test_a_job_that_has_ended_is_not_polled(stage: Stage) -> None:
    """F28: no poll after any terminal state, not even by a message already on its way."""
    job_id, _run = stage.running_job()
    stage.clock.advance(2)
    ((claimed, token),) = claim_due(stage.runtime, "poll", 10)
    webhook(stage, job_id, JobState.SUCCEEDED)

    assert str(poll_job(stage.runtime, claimed, token)) == "nothing"
    stage.live(timedelta(minutes=10))

    assert stage.provider.count("status") == 0
    assert stage.job(job_id)["lease_token"] is None


def test_an_answer_fetched_before_the_webhook_and_applied_after_it_is_dropped(stage: Stage) -> None:
    """F33 c: "processing" is older than "succeeded", whenever it arrives."""
    job_id, run = stage.running_job()
    stage.provider.set(run, JobState.RUNNING)
    stage.provider.script("status", then(lambda: webhook(stage, job_id, JobState.SUCCEEDED, output={"a": 1})))

    stage.poll(job_id)

    job = stage.job(job_id)
    assert (job["state"], job["output"], job["next_poll_at"]) == ("succeeded", {"a": 1}, None)
    assert stage.history(job_id) == ["pending>succeeded by webhook"]
    assert stage.events(job_id).count("job.succeeded") == 1


def test_poll_and_webhook_together_make_one_transition(stage: Stage) -> None:
    """F33 a: both finish the job; one history row, one event."""
    job_id, run = stage.running_job()
    stage.provider.finish(run)
    stage.provider.script("status", then(lambda: webhook(stage, job_id, JobState.SUCCEEDED)))

    stage.poll(job_id)

    assert stage.history(job_id) == ["pending>succeeded by webhook"]
    assert stage.events(job_id).count("job.succeeded") == 1


def test_a_contradiction_is_asked_about_once_more_and_kept_for_a_person(stage: Stage) -> None:
    job_id, run = stage.running_job()
    webhook(stage, job_id, JobState.FAILED, error=JobError("nsfw", "moderated"))
    stage.clock.advance(1)
    webhook(stage, job_id, JobState.SUCCEEDED, output={"a": 1})
    stage.provider.finish(run)

    stage.live(timedelta(minutes=10))

    job = stage.job(job_id)
    assert stage.provider.count("status") == 1
    assert (job["state"], job["review_reason"], job["next_poll_at"]) == ("failed", "conflicting_outcome", None)
    words = [row["reason"] for row in stage.rows(job_transitions, job_id=job_id) if row["source"] == "poll"]
    assert words == ["asked again after the contradiction, the provider says succeeded"]


def test_a_contradiction_found_by_a_poll_is_asked_about_once_more(stage: Stage) -> None:
    job_id, run = stage.running_job()
    stage.provider.set(run, JobState.FAILED, error=JobError("nsfw", "moderated"))
    stage.provider.script("status", then(lambda: webhook(stage, job_id, JobState.SUCCEEDED)))

    stage.poll(job_id)
    assert stage.job(job_id)["next_poll_at"] is not None
    stage.live(timedelta(minutes=10))

    assert stage.provider.count("status") == 2
    assert stage.job(job_id)["next_poll_at"] is None


def test_a_contradiction_that_cannot_be_asked_about_is_given_up(stage: Stage) -> None:
    job_id, _run = stage.running_job()
    webhook(stage, job_id, JobState.FAILED)
    webhook(stage, job_id, JobState.SUCCEEDED)
    stage.provider.always("status", BLIP)

    stage.live(timedelta(hours=1))

    assert stage.provider.count("status") == 5
    assert stage.job(job_id)["next_poll_at"] is None


# Hints, leases and defects ----------------------------------------------------------------------------------


def test_a_hint_makes_the_next_poll_due_now(stage: Stage) -> None:
    job_id, _run = stage.running_job()
    stage.write(job_id, next_poll_at=stage.clock.now() + timedelta(hours=1))

    with stage.database.write() as tx:
        assert request_poll(tx, job_id)

    assert stage.job(job_id)["next_poll_at"] == stage.clock.now()


def test_a_hint_during_a_poll_is_not_lost(stage: Stage) -> None:
    """The read may have been made before the news; another one is due at once."""
    job_id, _run = stage.running_job()

    def hint() -> None:
        stage.clock.advance(1)
        stage.write(job_id, next_poll_at=stage.clock.now())

    stage.provider.script("status", then(hint))
    stage.poll(job_id)

    assert stage.job(job_id)["next_poll_at"] == stage.clock.now()


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELED])
def test_a_hint_about_a_job_that_has_ended_asks_nothing(stage: Stage, state: JobState) -> None:
    job_id, _run = stage.running_job()
    webhook(stage, job_id, state)

    with stage.database.write() as tx:
        assert not request_poll(tx, job_id)


def test_a_copied_message_polls_once(stage: Stage) -> None:
    """F57: the message is delivered twice; the token is good for one of them."""
    stage.running_job()
    stage.clock.advance(2)
    ((job_id, token),) = claim_due(stage.runtime, "poll", 10)

    results = [str(poll_job(stage.runtime, job_id, token)) for _ in range(2)]

    assert results == ["same", "nothing"]
    assert stage.provider.count("status") == 1


def test_a_worker_that_lost_its_lease_writes_no_due_times(stage: Stage) -> None:
    """It woke up after another had taken the job over; what it read is still true and goes through the one door."""
    job_id, run = stage.running_job()

    def stall() -> None:
        stage.end_leases()
        stage.write(job_id, lease_token="another", lease_until=stage.clock.now() + MINUTE)
        stage.provider.set(run, JobState.RUNNING)

    stage.provider.script("status", then(stall))
    due_at = stage.clock.now()
    stage.poll(job_id)

    job = stage.job(job_id)
    assert (job["lease_token"], job["next_poll_at"], job["starts"]) == ("another", due_at, 1)


def test_one_jobs_odd_answer_ends_in_a_dead_letter_while_others_are_polled_on(stage: Stage) -> None:
    odd, odd_run = stage.running_job()
    fine, fine_run = stage.running_job()
    original = stage.provider.status

    def status(run: str) -> Report:
        if run == odd_run:
            raise KeyError("frames")
        return original(run)

    stage.provider.status = status  # type: ignore[method-assign]
    stage.live(timedelta(minutes=10))
    stage.provider.finish(fine_run)
    stage.live(timedelta(minutes=2), until=fine)

    (letter,) = stage.letters()
    assert (letter["kind"], letter["ref"], letter["attempts"]) == ("poll", odd, MAX_STARTS)
    assert stage.job(odd)["next_poll_at"] is None
    assert stage.job(odd)["state"] == "pending"
    assert stage.job(fine)["state"] == "succeeded"


def test_a_provider_that_left_the_configuration_is_not_polled(stage: Stage) -> None:
    job_id, _run = stage.running_job()
    stage.runtime.providers = {}

    assert stage.poll(job_id) == "nothing"
    assert stage.sweep() == 0


def test_what_a_poll_says_is_the_providers_word(stage: Stage) -> None:
    job_id, run = stage.running_job()
    stage.provider.set(run, JobState.FAILED, error=JobError("oom", "out of memory"))

    stage.poll(job_id)

    (row,) = stage.rows(job_transitions, job_id=job_id)
    assert (row["source"], row["provider_job_id"], row["attempt"]) == (Source.POLL, run, 1)
    assert stage.job(job_id)["error"] == {"code": "oom", "message": "out of memory"}
    assert stage.job(job_id)["finished_at"] == T


def test_a_read_that_asks_twice_ends_while_the_job_is_ours(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request alone would be within its bounds, and both together outlast the lease."""
    monkeypatch.setattr(polling, "ASK_WITHIN_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = HttpClient(Bounds(total_s=12.0))
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"

        def ask_twice(_call: object) -> object:
            with contextlib.suppress(UnknownOutcome):
                client.request("GET", url)
            return client.request("GET", url)

        job_id, _run = stage.running_job()
        stage.provider.script("status", ask_twice)
        begun = time.monotonic()

        assert stage.poll(job_id) == Polled.TRANSIENT

    assert time.monotonic() - begun < 2.0
    client.close()
