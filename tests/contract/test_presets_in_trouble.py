"""Luma and Higgsfield as presets, against the simulator with every fault of submits, reads and webhooks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import pytest
import requests

from homing.simulator.faults import Fault, Faults
from jobs.core.errors import Transient, UnknownOutcome
from jobs.core.observations import Json
from jobs.core.states import JobState
from jobs.providers.port import AlreadyFinished
from jobs.services.submitting.plan import Sent, SubmitStep, next_step
from tests.contract.dialects.planning import EveryRun
from tests.contract.dialects.receiver import Receiver, receiving
from tests.contract.speakers import Speaker, World, world_of

Build = Callable[..., World]


def a_clip(model: str) -> Callable[[World, str, bool], dict[str, Json]]:
    def make(_world: World, lasts: str, fails: bool) -> dict[str, Json]:
        failing: dict[str, Json] = {"fail": "out of paint"} if fails else {}
        return {"model": model, "prompt": "a pigeon", "duration_s": float(lasts), **failing}

    return make


def a_speaker(name: str, path: str, model: str, *events: JobState) -> Speaker:
    return Speaker(
        name, name, path, a_clip(model), {}, is_hint=True, scheme="none", entry={"webhook_secrets": []}, events=events
    )


LUMA = a_speaker("luma", "luma/dream-machine/v1", "ray-2", JobState.RUNNING, JobState.SUCCEEDED)
HIGGSFIELD = a_speaker("higgsfield", "higgsfield", "higgsfield-ai/video/fast", JobState.SUCCEEDED)


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture(params=[LUMA, HIGGSFIELD], ids=["luma", "higgsfield"])
def build(request: pytest.FixtureRequest, hook: Receiver) -> Iterator[Build]:
    with ExitStack() as opened:

        def start(**faults: object) -> World:
            plan = EveryRun(Faults(**faults)) if faults else None  # type: ignore[arg-type]
            return opened.enter_context(world_of(request.param, hook, plan))

        yield start


def test_the_file_a_link_leads_to_is_there(build: Build) -> None:
    (link,) = build().begin().read_until(JobState.SUCCEEDED).links

    assert requests.get(link.url, timeout=5).content.startswith(b"GIF8")


def test_events_tell_of_the_run_and_are_only_hints(build: Build) -> None:
    world = build()
    run = world.begin(token="attempt-7")
    bodies = world.hook.wait_for(len(world.speaker.events))

    reports = [world.adapter.read_webhook(body, {}).report for body in bodies]

    assert [report.state for report in reports if report] == list(world.speaker.events)
    assert {report.provider_job_id for report in reports if report} == {run.id}
    assert all("/webhooks/p/attempt-7" in head for head in world.hook.heads)
    assert world.adapter.capabilities.webhook_is_hint


def test_an_event_may_come_before_the_answer_to_its_submit(build: Build) -> None:
    """F16"""
    world = build(webhook=Fault.EARLY)

    accepted = world.adapter.submit(world.request())

    told = world.adapter.read_webhook(world.hook.bodies[-1], {}).report
    assert told is not None
    assert told.provider_job_id == accepted.provider_job_id
    assert accepted.state in (None, JobState.PENDING)


def test_a_lost_answer_ends_with_one_billed_run(build: Build) -> None:
    """F30: Luma is searched, Higgsfield is sent the same key again."""
    world = build(submit=Fault.LOST_ANSWER)
    request, now = world.request(token="attempt-9"), datetime.now(UTC)
    with pytest.raises(UnknownOutcome):
        world.adapter.submit(request)

    step = next_step(Sent(now), world.adapter.capabilities, now=now + timedelta(seconds=5))
    if step is SubmitStep.RESEND:
        found = (world.adapter.submit(request),)
    else:
        found = world.adapter.find(idempotency_key=request.idempotency_key, token=request.token)

    assert step is (SubmitStep.ASK if world.speaker.name == "luma" else SubmitStep.RESEND)
    (billed,) = world.simulator.provider.runs.list_runs()
    assert [report.provider_job_id for report in found] == [billed.id]


@pytest.mark.parametrize("fault", [Fault.SUBMIT_429, Fault.SUBMIT_503])
def test_a_busy_provider_has_not_taken_the_submit_or_may_have(build: Build, fault: Fault) -> None:
    world = build(submit=fault)

    with pytest.raises(Transient if fault is Fault.SUBMIT_429 else UnknownOutcome) as caught:
        world.adapter.submit(world.request())

    assert caught.value.retry_after == (timedelta(seconds=1) if fault is Fault.SUBMIT_429 else None)
    assert world.ledger["runs_billed"] == 0


@pytest.mark.parametrize("fault", [Fault.STATUS_5XX, Fault.STATUS_HTML, Fault.STATUS_HANG, Fault.STATUS_429])
def test_a_blip_of_a_read_is_a_delay(build: Build, fault: Fault) -> None:
    """F25, F26, F27"""
    run = build(status=fault).begin()

    with pytest.raises(Transient) as caught:
        run.read()

    assert caught.value.retry_after == (timedelta(seconds=1) if fault is Fault.STATUS_429 else None)
    assert run.read_until(JobState.SUCCEEDED).output


@pytest.mark.parametrize("jitter", [0.0, 0.5, 0.9])
def test_a_word_nobody_knows_is_no_state_and_is_kept(build: Build, jitter: float) -> None:
    """F24"""
    report = build(status=Fault.STATUS_UNKNOWN, jitter=jitter).begin().read()

    assert (report.state, report.output) == (None, None)
    assert report.unknown_status


def test_a_run_at_work_is_canceled_where_the_vendor_can(build: Build) -> None:
    """F34: Luma erases what is at work, Higgsfield only what still waits; neither claim is ours to make."""
    world = build()
    run = world.begin(lasts="3600")
    run.read_until(JobState.RUNNING)

    if world.speaker.name == "luma":
        assert world.adapter.cancel(run.address).state is JobState.CANCELED  # type: ignore[union-attr]
    else:
        with pytest.raises(AlreadyFinished):
            world.adapter.cancel(run.address)
        assert run.read().state is JobState.RUNNING
