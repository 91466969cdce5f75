"""Submitting over real databases and a provider that bills: never twice, whatever gets lost."""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta
from itertools import pairwise

import pytest

from jobs.broker import RELAY
from jobs.clock import FakeClock
from jobs.core.errors import Transient, UnknownOutcome
from jobs.core.policy import OnDeadline, Policy
from jobs.core.states import JobState
from jobs.providers.answers import DECLINED
from jobs.providers.port import Capabilities, KeyReused, Refused, Report
from jobs.services.canceling import request_cancel
from jobs.services.observe import DOUBLE_SUBMIT
from jobs.services.submitting.plan import MAX_ASKS
from jobs.services.work import MAX_TRIES
from jobs.storage.accounts import find_account
from jobs.storage.attempts import insert_attempt
from jobs.storage.database import Database
from jobs.storage.jobs import update_bookkeeping
from jobs.storage.schema import job_attempts
from tests.factories import PROVIDER, seen
from tests.fakes.provider import (
    NO_KEYS,
    NO_KEYS_WITH_SEARCH,
    REJECT,
    REJECT_WITH_SEARCH,
    REPLAY,
    WITH_SEARCH,
    Killed,
    answers,
    loses,
    raises,
    then,
)
from tests.fakes.stage import Stage, a_stage

MINUTE = timedelta(minutes=1)
RARELY_POLLED = Policy(poll_base=timedelta(hours=1), poll_cap=timedelta(hours=1))
EVERY_CLASS = [REPLAY, WITH_SEARCH, REJECT, REJECT_WITH_SEARCH, NO_KEYS, NO_KEYS_WITH_SEARCH]


@pytest.fixture
def stage(database: Database, clock: FakeClock) -> Stage:
    return a_stage(database, clock)


def observe(stage: Stage, job_id: str, state: JobState | None = None, **facts: object) -> None:
    """What a webhook would have done."""
    with stage.database.write() as tx:
        stage.runtime.observer.observe(tx, job_id, seen(state, **facts))


def test_a_job_is_sent_once_with_its_own_key_token_and_callback(stage: Stage) -> None:
    job_id = stage.new_job()

    assert stage.submit(job_id) == "accepted"

    attempt, job, request = stage.attempt(job_id), stage.job(job_id), stage.provider.requests[0]
    assert request.idempotency_key == attempt["idempotency_key"]
    assert request.token == attempt["token"]
    assert request.callback_url.endswith(f"/webhooks/{PROVIDER}/{attempt['token']}")
    assert (job["provider_job_id"], job["state"]) == ("p-1", "pending")
    assert (attempt["provider_job_id"], attempt["outcome"], attempt["tries"]) == ("p-1", "accepted", 1)
    assert (job["next_submit_at"], job["lease_token"], job["starts"]) == (None, None, 0)
    assert job["next_poll_at"] > stage.clock.now()
    assert stage.events(job_id) == ["job.submitted"]
    assert stage.woken == [(PROVIDER, "p-1")]
    assert stage.broker.take(RELAY)


def test_a_second_message_finds_nothing_to_do(stage: Stage) -> None:
    job_id = stage.new_job()
    stage.submit(job_id)

    assert stage.submit(job_id) == "nothing"
    assert stage.provider.count("submit") == 1


def test_a_message_without_a_job_is_dropped(stage: Stage) -> None:
    assert stage.submit("job_nobody") == "nothing"


def test_the_input_is_sent_as_it_was_given(stage: Stage) -> None:
    job_id = stage.new_job(input={"model": "video", "prompt": "r\u00e9sum\u00e9", "duration_s": 2})

    stage.submit(job_id)

    assert stage.provider.requests[0].input == {"model": "video", "prompt": "r\u00e9sum\u00e9", "duration_s": 2}


# An answer that got lost ------------------------------------------------------------------------------------


@pytest.mark.parametrize("effect", [loses(), loses(UnknownOutcome("500")), loses(TimeoutError("an adapter's slip"))])
@pytest.mark.parametrize("capabilities", [REPLAY, WITH_SEARCH, REJECT_WITH_SEARCH, NO_KEYS_WITH_SEARCH])
def test_a_lost_answer_is_found_again_and_billed_once(
    database: Database, clock: FakeClock, capabilities: Capabilities, effect: object
) -> None:
    """F30 a, d: the run exists, its answer was lost; the same key or the list brings it back."""
    stage = a_stage(database, clock, capabilities=capabilities)
    stage.provider.script("submit", effect)  # type: ignore[arg-type]
    job_id = stage.new_job()

    stage.live(MINUTE)

    assert len(stage.provider.runs) == 1
    assert stage.job(job_id)["provider_job_id"] == "p-1"
    assert stage.job(job_id)["review_reason"] is None
    assert len({request.idempotency_key for request in stage.provider.requests}) == 1


@pytest.mark.parametrize("capabilities", EVERY_CLASS)
def test_an_outcome_that_is_not_known_never_becomes_a_second_run(
    database: Database, clock: FakeClock, capabilities: Capabilities
) -> None:
    """F30: whatever class of provider, and however long it stays silent."""
    stage = a_stage(database, clock, capabilities=capabilities, policy=RARELY_POLLED)
    stage.provider.list_lag = timedelta(days=9)
    stage.provider.script("submit", loses())
    stage.new_job(deadline_at=clock.now() + timedelta(days=9))

    stage.live(timedelta(hours=2))

    assert len(stage.provider.runs) == 1


@pytest.mark.invariant("I6")
@pytest.mark.invariant("I13")
@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_to_its_requests_an_attempt_keeps_its_key_and_has_one_run(
    database: Database, clock: FakeClock, seed: int
) -> None:
    """Answers lost, requests lost, refusals for now, kills before and after: in any order, at any kind of provider."""
    dice = random.Random(seed)
    stage = a_stage(database, clock, capabilities=dice.choice(EVERY_CLASS), policy=RARELY_POLLED)
    stage.provider.list_lag = timedelta(seconds=dice.choice((0, 20, 600)))
    troubles = [
        None,
        loses(),
        raises(UnknownOutcome("reset")),
        raises(Transient("refused")),
        raises(Transient("429", retry_after=timedelta(seconds=5))),
        loses(Killed()),
        raises(Killed()),
    ]
    stage.provider.script("submit", *dice.choices(troubles, k=6))
    stage.provider.script("find", *dice.choices([None, raises(Transient("502")), raises(Killed())], k=6))
    jobs = [stage.new_job() for _ in range(2)]

    for _ in range(15):
        try:
            stage.live(timedelta(minutes=1))
        except Killed:
            stage.end_leases()

    keys = {job_id: stage.attempt(job_id)["idempotency_key"] for job_id in jobs}
    assert len(set(keys.values())) == len(jobs)
    assert {request.idempotency_key for request in stage.provider.requests} <= set(keys.values())
    runs = Counter(run.key for run in stage.provider.runs.values())
    assert all(count == 1 for count in runs.values())
    for job_id in jobs:
        home = stage.job(job_id)["provider_job_id"] is not None
        assert home or stage.job(job_id)["review_reason"] == "ambiguous_submit" or stage.letters("submit")


@pytest.mark.invariant("I6")
def test_another_attempt_has_another_key_and_token(stage: Stage) -> None:
    job_id = stage.new_job()

    with stage.database.write() as tx:
        second = insert_attempt(tx, job_id=job_id, provider=PROVIDER, number=2, at=tx.now)
    first = stage.rows(job_attempts, job_id=job_id, number=1)[0]

    assert first["idempotency_key"] != second["idempotency_key"]
    assert first["token"] != second["token"]


def test_a_provider_that_replays_is_sent_the_same_request_again(stage: Stage) -> None:
    """F30 c: "same key in progress" is answered until the first request is through."""
    busy = raises(UnknownOutcome("409: same key in progress"))
    stage.provider.script("submit", loses(), busy, busy)
    job_id = stage.new_job()

    stage.live(MINUTE)

    first, *others = stage.provider.requests
    assert len(others) == 3
    assert all(other == first for other in others)
    assert stage.job(job_id)["provider_job_id"] == "p-1"
    assert stage.attempt(job_id)["tries"] == 4


def test_without_keys_and_list_a_person_is_asked_at_once(database: Database, clock: FakeClock) -> None:
    """F30 e: no blind second request; the job waits where everybody can see it."""
    stage = a_stage(database, clock, capabilities=NO_KEYS)
    stage.provider.script("submit", loses())
    job_id = stage.new_job()

    assert stage.submit(job_id) == "review"
    stage.live(timedelta(minutes=50))

    job = stage.job(job_id)
    assert (job["state"], job["review_reason"], job["next_submit_at"]) == ("pending", "ambiguous_submit", None)
    assert "no answer came" in job["review_detail"]
    assert stage.attempt(job_id)["outcome"] == "unknown"
    assert stage.provider.count("submit") == 1
    assert stage.events(job_id) == ["job.review_requested"]


def test_a_provider_that_cannot_be_asked_is_not_said_to_have_been(database: Database, clock: FakeClock) -> None:
    stage = a_stage(database, clock, capabilities=NO_KEYS)
    stage.provider.script("submit", loses())
    job_id = stage.new_job()
    stage.submit(job_id)
    with database.write() as tx:
        update_bookkeeping(tx, job_id, {"next_submit_at": tx.now, "review_reason": None})

    assert stage.submit(job_id) == "review"
    assert "asked" not in stage.job(job_id)["review_detail"]


def test_an_empty_list_is_asked_again_and_then_a_person(database: Database, clock: FakeClock) -> None:
    """An empty answer alone never permits a new submit: the list may lag."""
    stage = a_stage(database, clock, capabilities=NO_KEYS_WITH_SEARCH)
    stage.provider.list_lag = timedelta(minutes=30)
    stage.provider.script("submit", loses())
    job_id = stage.new_job()

    stage.live(timedelta(minutes=5))
    asked = stage.provider.count("find")
    assert stage.job(job_id)["review_reason"] == "ambiguous_submit"
    assert stage.attempt(job_id)["asks"] == asked == MAX_ASKS
    stage.live(timedelta(minutes=45))

    job = stage.job(job_id)
    assert (job["provider_job_id"], job["review_reason"]) == ("p-1", None)
    assert stage.provider.count("submit") == 1
    assert stage.events(job_id)[:3] == ["job.review_requested", "job.submitted", "job.review_resolved"]


def test_waits_between_questions_grow(database: Database, clock: FakeClock) -> None:
    stage = a_stage(database, clock, capabilities=NO_KEYS_WITH_SEARCH)
    stage.provider.list_lag = timedelta(days=1)
    stage.provider.script("submit", loses())
    job_id = stage.new_job()
    waits = []
    for _ in range(MAX_ASKS):
        before = clock.now()
        stage.submit(job_id)
        due_at = stage.job(job_id)["next_submit_at"]
        waits.append(due_at - before)
        clock.advance(due_at - before)

    assert all(later > earlier for earlier, later in pairwise(waits))


def test_a_refused_key_without_a_list_asks_a_person(database: Database, clock: FakeClock) -> None:
    stage = a_stage(database, clock, capabilities=REJECT)
    stage.provider.script("submit", loses())
    job_id = stage.new_job()

    stage.live(MINUTE)

    assert stage.provider.count("submit") == 2
    assert stage.job(job_id)["review_reason"] == "ambiguous_submit"
    assert stage.job(job_id)["next_submit_at"] is None


def test_a_request_that_never_arrived_is_sent_again_where_used_keys_are_refused(
    database: Database, clock: FakeClock
) -> None:
    stage = a_stage(database, clock, capabilities=REJECT_WITH_SEARCH)
    stage.provider.script("submit", raises(UnknownOutcome("reset")))
    job_id = stage.new_job()

    stage.live(timedelta(minutes=5))

    assert stage.provider.count("find") == MAX_ASKS
    assert stage.job(job_id)["provider_job_id"] == stage.provider.only_run.id


def test_a_refused_key_is_looked_for_until_the_list_shows_its_run(database: Database, clock: FakeClock) -> None:
    stage = a_stage(database, clock, capabilities=REJECT_WITH_SEARCH)
    stage.provider.list_lag = timedelta(minutes=20)
    stage.provider.script("submit", loses())
    job_id = stage.new_job()

    stage.live(timedelta(minutes=10))
    assert stage.job(job_id)["review_reason"] == "ambiguous_submit"
    assert stage.attempt(job_id)["error"]["code"] == "key_reused"
    stage.live(timedelta(minutes=30))

    assert stage.job(job_id)["provider_job_id"] == stage.provider.only_run.id


def test_two_runs_under_one_token_raise_the_alarm(database: Database, clock: FakeClock) -> None:
    """The provider began two runs for one request: both are kept, nobody is told that it is fine."""
    stage = a_stage(database, clock, capabilities=NO_KEYS_WITH_SEARCH)
    job_id = stage.new_job()
    attempt = stage.attempt(job_id)
    stage.provider.script("submit", loses())
    stage.submit(job_id)
    stage.provider.begin(key=attempt["idempotency_key"], token=attempt["token"])
    clock.advance(MINUTE)

    stage.submit(job_id)

    assert stage.job(job_id)["provider_job_id"] == "p-1"
    (letter,) = stage.letters(DOUBLE_SUBMIT)
    assert "p-2" in letter["reason"]
    assert stage.woken == [(PROVIDER, "p-1"), (PROVIDER, "p-2")]


def test_a_list_that_does_not_answer_is_no_empty_list(database: Database, clock: FakeClock) -> None:
    stage = a_stage(database, clock, capabilities=NO_KEYS_WITH_SEARCH)
    stage.provider.script("submit", loses())
    stage.provider.script("find", *[raises(Transient("502"))] * 4)
    job_id = stage.new_job()

    stage.live(MINUTE)

    assert stage.attempt(job_id)["asks"] == 0
    assert stage.job(job_id)["provider_job_id"] == "p-1"


# Refused, and not accepted for now --------------------------------------------------------------------------


def test_a_refused_submit_fails_the_job_with_the_providers_words(stage: Stage) -> None:
    stage.provider.script("submit", raises(Refused("prompt must not be empty")))
    job_id = stage.new_job()

    assert stage.submit(job_id) == "refused"

    job, attempt = stage.job(job_id), stage.attempt(job_id)
    assert job["state"] == "failed"
    assert job["error"] == {"code": "refused", "message": "prompt must not be empty"}
    assert (attempt["outcome"], attempt["answered_at"]) == ("refused", stage.clock.now())
    assert stage.history(job_id) == ["pending>failed by submit"]
    assert stage.events(job_id) == ["job.failed"]


def test_a_refusal_with_a_nul_in_it_can_be_stored(stage: Stage) -> None:
    stage.provider.script("submit", raises(Refused("bad\x00byte")))
    job_id = stage.new_job()

    stage.submit(job_id)

    assert stage.job(job_id)["error"]["message"] == "bad\ufffdbyte"


def test_a_request_that_never_left_is_tried_again(stage: Stage) -> None:
    stage.provider.script("submit", raises(Transient("connection refused")))
    job_id = stage.new_job()

    assert stage.submit(job_id) == "retry"
    job, attempt = stage.job(job_id), stage.attempt(job_id)
    assert (attempt["sending_at"], attempt["outcome"], job["submit_tries"]) == (None, None, 1)
    assert job["next_submit_at"] > stage.clock.now()
    stage.live(MINUTE)

    assert stage.job(job_id)["provider_job_id"] == "p-1"


def test_after_the_last_try_a_dead_letter_waits_and_can_be_redriven(stage: Stage) -> None:
    stage.provider.always("submit", raises(Transient("no such credential", slug=DECLINED)))
    job_id = stage.new_job()

    stage.live(timedelta(minutes=30))

    (letter,) = stage.letters("submit")
    job = stage.job(job_id)
    assert (letter["ref"], letter["attempts"], letter["reason"]) == (job_id, MAX_TRIES, "no such credential")
    assert (job["state"], job["next_submit_at"], stage.provider.count("submit")) == ("pending", None, MAX_TRIES)
    stage.provider.heal("submit")
    stage.write(job_id, next_submit_at=stage.clock.now(), submit_tries=0)
    stage.live(MINUTE)

    assert stage.job(job_id)["provider_job_id"] == stage.provider.only_run.id


def test_a_busy_provider_is_obeyed_and_costs_no_try(stage: Stage) -> None:
    """F27: never sooner than asked, and the whole account is left alone."""
    stage.provider.script("submit", *[raises(Transient("429", retry_after=timedelta(seconds=90)))] * 20)
    job_id, other = stage.new_job(), stage.new_job()

    stage.submit(job_id)

    job = stage.job(job_id)
    assert job["next_submit_at"] >= stage.clock.now() + timedelta(seconds=90)
    assert job["submit_tries"] == 0
    assert stage.submit(other) == "nothing"
    with stage.database.read() as tx:
        assert find_account(tx, PROVIDER)["blocked_until"] == stage.clock.now() + timedelta(seconds=90)
    stage.live(timedelta(minutes=50))

    assert stage.letters() == []
    assert {stage.job(one)["provider_job_id"] for one in (job_id, other)} == {"p-1", "p-2"}


def test_a_try_again_that_never_left_says_nothing_about_the_first(stage: Stage) -> None:
    """The first request may have arrived; that the second was refused a connection does not undo it."""
    stage.provider.script("submit", loses(), raises(Transient("connection refused")))
    job_id = stage.new_job()
    stage.submit(job_id)
    sending_at = stage.attempt(job_id)["sending_at"]
    stage.clock.advance(2)

    stage.submit(job_id)

    assert stage.attempt(job_id)["sending_at"] == sending_at
    assert request_cancel(stage.runtime, job_id)["state"] == "pending"


def test_a_provider_long_out_of_reach_is_asked_slowly_after_a_person_was(stage: Stage) -> None:
    stage.provider.script("submit", loses())
    stage.provider.script("submit", *[raises(Transient("connection refused"))] * 9)
    job_id = stage.new_job()

    stage.live(timedelta(minutes=8))
    assert stage.job(job_id)["review_reason"] == "ambiguous_submit"
    stage.live(timedelta(minutes=40))

    assert stage.job(job_id)["provider_job_id"] == "p-1"
    assert stage.job(job_id)["review_reason"] is None
    assert len(stage.provider.runs) == 1


# Against webhooks, cancels and other attempts ---------------------------------------------------------------


def test_a_webhook_that_overtakes_the_answer_keeps_its_word(stage: Stage) -> None:
    """F33 b: the answer stores the run's id and leaves the state alone."""
    job_id = stage.new_job()
    stage.provider.script("submit", then(lambda: observe(stage, job_id, JobState.SUCCEEDED, output={"a": 1})))

    stage.submit(job_id)

    job = stage.job(job_id)
    assert (job["state"], job["provider_job_id"], job["output"]) == ("succeeded", "p-1", {"a": 1})
    assert stage.history(job_id) == ["pending>succeeded by webhook"]
    assert job["next_submit_at"] is None


def test_a_webhook_without_the_runs_id_still_lets_the_answer_store_it(stage: Stage) -> None:
    job_id = stage.new_job()
    early = then(lambda: observe(stage, job_id, JobState.SUCCEEDED, provider_job_id=None))
    stage.provider.script("submit", early)

    stage.submit(job_id)

    assert (stage.job(job_id)["state"], stage.job(job_id)["provider_job_id"]) == ("succeeded", "p-1")


@pytest.mark.parametrize("error", [UnknownOutcome("time-out"), Refused("400"), Transient("refused"), KeyReused("x")])
def test_an_answer_that_a_webhook_has_overtaken_changes_nothing(stage: Stage, error: Exception) -> None:
    job_id = stage.new_job()

    def webhook_then_error() -> None:
        observe(stage, job_id, JobState.RUNNING)
        raise error

    stage.provider.script("submit", then(webhook_then_error))

    stage.submit(job_id)

    job = stage.job(job_id)
    assert (job["state"], job["provider_job_id"], job["next_submit_at"]) == ("running", "p-1", None)
    assert stage.attempt(job_id)["outcome"] == "accepted"
    assert job["lease_token"] is None


def test_a_status_in_the_answer_is_applied(stage: Stage) -> None:
    stage.provider.script("submit", answers(Report("p-9", JobState.RUNNING)))
    job_id = stage.new_job()

    stage.submit(job_id)

    assert stage.history(job_id) == ["pending>running by submit"]


def test_a_canceled_job_of_which_nothing_was_sent_is_not_sent(stage: Stage) -> None:
    """F34: the wish came after a request that never left."""
    stage.provider.script("submit", raises(Transient("connection refused")))
    job_id = stage.new_job()
    stage.submit(job_id)
    stage.write(job_id, cancel_requested_at=stage.clock.now())
    stage.clock.advance(MINUTE)

    assert stage.submit(job_id) == "canceled"

    assert stage.provider.count("submit") == 1
    assert stage.history(job_id) == ["pending>canceled by cancel"]


def test_a_cancel_while_the_outcome_is_unknown_finds_the_run_and_stops_it(database: Database, clock: FakeClock) -> None:
    stage = a_stage(database, clock, capabilities=WITH_SEARCH)
    stage.provider.script("submit", loses())
    job_id = stage.new_job()
    stage.submit(job_id)
    request_cancel(stage.runtime, job_id)

    stage.live(MINUTE)

    assert stage.job(job_id)["state"] == "canceled"
    assert stage.provider.only_run.state is JobState.CANCELED
    assert (stage.provider.count("submit"), stage.provider.count("cancel")) == (1, 1)


def test_a_late_answer_about_an_older_attempt_raises_the_alarm_and_settles_nothing(stage: Stage) -> None:
    job_id = stage.new_job()

    def person_resubmits() -> None:
        stage.write(job_id, attempt=2, version=2, lease_token=None, lease_until=None)

    stage.provider.script("submit", then(person_resubmits))
    stage.submit(job_id)

    assert stage.job(job_id)["provider_job_id"] is None
    assert len(stage.letters(DOUBLE_SUBMIT)) == 1
    assert stage.rows(job_attempts, job_id=job_id, number=1)[0]["provider_job_id"] == "p-1"


# Adoption ---------------------------------------------------------------------------------------------------


def adopting(stage: Stage, run: str) -> str:
    return stage.new_job(adopt=run)


def test_an_adopted_run_is_read_and_never_submitted(stage: Stage) -> None:
    run = stage.provider.begin(key="theirs", token="theirs").id
    stage.provider.set(run, JobState.RUNNING)
    job_id = adopting(stage, run)

    assert stage.submit(job_id) == "accepted"

    job = stage.job(job_id)
    assert (job["provider_job_id"], job["state"]) == (run, "running")
    assert stage.provider.count("submit") == 0
    assert stage.attempt(job_id)["sending_at"] is None
    assert job["next_poll_at"] is not None


def test_a_run_to_adopt_that_nobody_knows_fails_the_job(stage: Stage) -> None:
    job_id = adopting(stage, "p-404")

    stage.submit(job_id)

    assert stage.job(job_id)["error"]["code"] == "unknown_run"
    assert stage.provider.count("submit") == 0


def test_an_answer_about_another_run_is_no_adoption(stage: Stage) -> None:
    run = stage.provider.begin(key="k", token="t").id
    job_id = adopting(stage, run)
    stage.provider.script("status", answers(Report("p-other", JobState.SUCCEEDED)))

    assert stage.submit(job_id) == "retry"
    stage.live(MINUTE)

    assert stage.job(job_id)["provider_job_id"] == run
    assert stage.provider.count("submit") == 0


def test_an_adopted_run_whose_answer_names_no_id_is_the_one_that_was_asked_about(stage: Stage) -> None:
    run = stage.provider.begin(key="k", token="t").id
    job_id = adopting(stage, run)
    stage.provider.script("status", answers(Report(None, JobState.RUNNING)))

    assert stage.submit(job_id) == "accepted"

    assert (stage.job(job_id)["provider_job_id"], stage.job(job_id)["state"]) == (run, "running")


def test_a_provider_out_of_reach_delays_an_adoption(stage: Stage) -> None:
    run = stage.provider.begin(key="theirs", token="theirs").id
    stage.provider.script("status", *[raises(Transient("502"))] * 3)
    job_id = adopting(stage, run)

    stage.live(MINUTE)

    assert stage.job(job_id)["provider_job_id"] == run


# Leases and starts ------------------------------------------------------------------------------------------


def test_a_job_somebody_works_on_is_left_alone(stage: Stage) -> None:
    job_id = stage.new_job()
    results: list[str] = []
    stage.provider.script("submit", then(lambda: results.append(stage.submit(job_id))))

    stage.submit(job_id)

    assert results == ["nothing"]
    assert stage.provider.count("submit") == 1


def test_an_adapters_defect_ends_in_a_dead_letter_and_no_second_run(stage: Stage) -> None:
    stage.provider.always("submit", loses(RuntimeError("a defect")))
    job_id, healthy = stage.new_job(), None

    stage.live(timedelta(minutes=20))
    stage.provider.heal("submit")
    healthy = stage.new_job()
    stage.live(MINUTE)

    (letter,) = stage.letters("submit")
    assert letter["ref"] == job_id
    assert "never came to its end" in letter["reason"]
    assert stage.job(healthy)["provider_job_id"] is not None
    assert len(stage.provider.runs) == 2


def test_at_the_deadline_an_ambiguous_job_may_fail_and_its_run_is_stopped_when_found(
    database: Database, clock: FakeClock
) -> None:
    policy = Policy(on_deadline=OnDeadline.FAIL, deadline=timedelta(hours=1))
    stage = a_stage(database, clock, capabilities=NO_KEYS, policy=policy)
    stage.provider.script("submit", loses())
    job_id = stage.new_job()
    stage.submit(job_id)
    stage.live(timedelta(hours=2))
    assert stage.job(job_id)["error"]["code"] == "deadline"

    observe(stage, job_id, JobState.RUNNING)
    stage.live(MINUTE)

    assert stage.provider.only_run.state is JobState.CANCELED
    assert stage.job(job_id)["state"] == "failed"
