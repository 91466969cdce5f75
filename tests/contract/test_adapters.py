"""Every adapter with a dialect in the simulator, over HTTP: one suite, one row of the table after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import requests

from homing.simulator.faults import Fault, Faults
from jobs.core.errors import Transient, UnknownOutcome
from jobs.core.signatures import verify
from jobs.core.states import JobState
from jobs.core.text import decode_json
from jobs.providers.port import AlreadyFinished, Gone, Refused
from jobs.services.submitting.plan import Sent, SubmitStep, next_step
from tests.contract.dialects.planning import EveryRun
from tests.contract.dialects.receiver import Receiver, receiving
from tests.contract.speakers import SPEAKERS, TOKEN, Speaker, World, world_of

Build = Callable[..., World]


@pytest.fixture(params=SPEAKERS, ids=[speaker.name for speaker in SPEAKERS])
def speaker(request: pytest.FixtureRequest) -> Speaker:
    chosen: Speaker = request.param
    return chosen


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def build(speaker: Speaker, hook: Receiver) -> Iterator[Build]:
    with ExitStack() as opened:

        def start(**faults: object) -> World:
            plan = EveryRun(Faults(**faults)) if faults else None  # type: ignore[arg-type]
            return opened.enter_context(world_of(speaker, hook, plan))

        yield start


@pytest.fixture
def world(build: Build) -> World:
    return build()


# The way of a run ----------------------------------------------------------------------------------------


def test_a_run_is_submitted_once_and_polled_home(world: World) -> None:
    run = world.begin()

    report = run.read_until(JobState.SUCCEEDED)

    assert report.provider_job_id == run.id
    assert report.output
    assert report.error is None
    assert world.ledger["runs_billed"] == 1


def test_a_run_that_works_is_pending_or_running_and_has_no_result(world: World) -> None:
    report = world.begin(lasts="3600").read()

    assert report.state in (JobState.PENDING, JobState.RUNNING)
    assert (report.output, report.links, report.error) == (None, (), None)


def test_result_files_are_linked_where_there_are_any(world: World) -> None:
    report = world.begin().read_until(JobState.SUCCEEDED)

    assert bool(report.links) is world.speaker.has_files
    for link in report.links:
        own = link.url.startswith(f"{world.config.base_url}/")
        answer = requests.get(link.url, headers={"Authorization": f"Bearer {TOKEN}"} if own else {}, timeout=5)
        assert answer.status_code == 200
        assert answer.content


def test_a_failure_brings_the_providers_words(world: World) -> None:
    report = world.begin(fails=True).read_until(JobState.FAILED)

    assert report.error is not None
    assert "out of paint" in report.error.message


def test_a_cancel_ends_the_run(world: World) -> None:
    run = world.begin(lasts="3600")
    run.read_until(JobState.RUNNING)

    answered = world.adapter.cancel(run.address)

    assert answered is None or answered.provider_job_id == run.id
    assert run.read_until(world.speaker.cancels_as).provider_job_id == run.id


def test_a_cancel_after_the_end_says_so_or_shows_the_end(world: World) -> None:
    run = world.begin()
    run.read_until(JobState.SUCCEEDED)

    try:
        report = world.adapter.cancel(run.address)
    except AlreadyFinished:
        return
    assert report is not None
    assert report.state is JobState.SUCCEEDED


def test_a_run_nobody_began_is_gone(world: World) -> None:
    stranger = world.begin().address[:-4] + "none"

    with pytest.raises(Gone):
        world.adapter.status(stranger)
    with pytest.raises(Gone):
        world.adapter.cancel(stranger)


# Webhooks ------------------------------------------------------------------------------------------------


def test_its_webhooks_are_authentic_and_tell_of_the_run(world: World) -> None:
    run = world.begin()
    world.hook.wait_for(len(world.speaker.events))
    secrets = world.config.webhook_secrets

    seen = []
    for raw, headers in zip(world.hook.raw, world.hook.headers, strict=True):
        verify(world.config.webhook_scheme, headers=headers, body=raw, secrets=secrets, now=datetime.now(UTC))
        seen.append(world.adapter.read_webhook(decode_json(raw), headers))  # type: ignore[arg-type]  # it is JSON

    reports = [event.report for event in seen if event.report is not None]
    assert [report.state for report in reports] == list(world.speaker.events)
    assert {report.provider_job_id for report in reports} == {run.id}
    hints = [event.is_hint or world.adapter.capabilities.webhook_is_hint for event in seen]
    assert set(hints) == {world.speaker.is_hint}
    assert bool(reports[-1].output) is not world.speaker.is_hint


def test_an_event_names_the_attempt_by_its_callback_or_the_run_by_its_id(world: World) -> None:
    world.begin(token="attempt-7")
    world.hook.wait_for(1)

    named = "/webhooks/p/attempt-7" in world.hook.heads[0]
    assert named is world.adapter.capabilities.callback_per_request


def test_a_failure_is_told_as_one(world: World) -> None:
    world.begin(fails=True)
    world.hook.wait_for(len(world.speaker.events))

    report = world.adapter.read_webhook(world.hook.bodies[-1], {}).report

    assert report is not None
    assert report.state is JobState.FAILED
    assert world.speaker.is_hint or (report.error is not None and "out of paint" in report.error.message)


def test_a_webhook_may_come_before_the_answer_to_its_submit(build: Build) -> None:
    world = build(webhook=Fault.EARLY)

    report = world.adapter.submit(world.request())

    last = world.adapter.read_webhook(world.hook.wait_for(len(world.speaker.events))[-1], {}).report
    assert last is not None
    assert last.provider_job_id == report.provider_job_id
    assert report.state in (None, JobState.PENDING)  # an end is believed where its result comes along


# Trouble -------------------------------------------------------------------------------------------------


def test_a_lost_answer_is_found_by_asking_or_by_its_callback_or_left_to_a_person(build: Build) -> None:
    """F30 d, e: one run, one bill, whatever the provider can be asked."""
    world = build(submit=Fault.LOST_ANSWER)
    with pytest.raises(UnknownOutcome):
        world.adapter.submit(world.request(token="attempt-9"))

    (billed,) = world.simulator.provider.runs.list_runs()
    capabilities, now = world.adapter.capabilities, datetime.now(UTC)
    found = world.adapter.find(idempotency_key="key-attempt-9", token="attempt-9")
    step = next_step(Sent(now), capabilities, now=now + timedelta(seconds=5))

    assert [report.provider_job_id for report in found] == ([billed.id] if world.speaker.finds else [])
    assert step is (SubmitStep.ASK if world.speaker.finds else SubmitStep.WAIT)
    if capabilities.callback_per_request:
        world.hook.wait_for(1)
        assert "/webhooks/p/attempt-9" in world.hook.heads[0]
    assert world.ledger["runs_billed"] == 1


def test_another_attempts_run_is_not_found(world: World) -> None:
    world.begin(token="attempt-1")

    assert world.adapter.find(idempotency_key="key-attempt-2", token="attempt-2") == ()


@pytest.mark.parametrize("fault", [Fault.SUBMIT_429, Fault.SUBMIT_503])
def test_a_busy_provider_has_not_taken_the_submit_or_may_have(build: Build, fault: Fault) -> None:
    world = build(submit=fault)

    with pytest.raises(Transient if fault is Fault.SUBMIT_429 else UnknownOutcome) as caught:
        world.adapter.submit(world.request())

    asked = timedelta(seconds=1) if fault is Fault.SUBMIT_429 else None
    assert caught.value.retry_after == asked


@pytest.mark.parametrize("fault", [Fault.STATUS_5XX, Fault.STATUS_HTML, Fault.STATUS_HANG, Fault.STATUS_429])
def test_a_blip_of_a_read_is_a_delay(build: Build, fault: Fault) -> None:
    """F25, F26, F27"""
    world = build(status=fault)
    run = world.begin()

    with pytest.raises(Transient) as caught:
        run.read()

    assert caught.value.retry_after == (timedelta(seconds=1) if fault is Fault.STATUS_429 else None)
    assert run.read_until(JobState.SUCCEEDED).output


@pytest.mark.parametrize("jitter", [0.0, 0.5, 0.9])
def test_a_word_nobody_knows_is_no_state_and_is_kept(build: Build, jitter: float) -> None:
    """F24"""
    world = build(status=Fault.STATUS_UNKNOWN, jitter=jitter)
    run = world.begin()

    report = run.read()

    assert report.provider_job_id == run.id
    assert (report.state, report.output) == (None, None)
    assert report.unknown_status


def test_a_cancel_that_is_taken_and_ignored_ends_as_the_run_does(build: Build) -> None:
    """F28: a wish is not an end."""
    world = build(cancel=Fault.CANCEL_IGNORED)
    run = world.begin(lasts="1")

    answered = world.adapter.cancel(run.address)

    assert answered is None or answered.state is not JobState.CANCELED
    assert run.read_until(JobState.SUCCEEDED).output


def test_an_input_the_provider_cannot_take_is_refused_for_good(world: World) -> None:
    request = replace(world.request(), input=world.speaker.refused)

    with pytest.raises(Refused):
        world.adapter.submit(request)

    assert world.ledger["runs_billed"] == 0
