"""Jobs at real providers, from submit to end: services, database, receiver; the simulator speaks for the provider."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from homing.simulator.faults import Fault, Faults
from jobs.clock import SystemClock
from jobs.core.states import TERMINAL
from jobs.ids import new_id
from jobs.services.canceling import cancel_run, request_cancel
from jobs.services.polling import poll_job
from jobs.services.runtime import ProviderEntry, Runtime
from jobs.services.submitting.submission import submit_job
from jobs.storage.database import Database
from jobs.storage.jobs import get_job, update_bookkeeping
from tests.contract.dialects.planning import EveryRun
from tests.contract.dialects.receiver import read_until, receiving
from tests.contract.speakers import SPEAKERS, Speaker, World, world_of
from tests.factories import PROVIDER, TENANT, new_job
from tests.fakes.runtime import a_runtime
from tests.integration.webhooks.incoming.world import an_app, call
from webhooks.incoming.applying.drain import drain
from webhooks.incoming.installation import Intake, build_intake

BY_NAME = {speaker.name: speaker for speaker in SPEAKERS}


@dataclass
class Stage:
    """A fleet of one process, and the provider it has an account at."""

    world: World
    runtime: Runtime
    intake: Intake
    app: Any

    def job(self, job_id: str) -> dict[str, Any]:
        with self.runtime.database.read() as tx:
            return dict(get_job(tx, job_id))

    def submitted(self, *, lasts: str = "0.3", **columns: Any) -> str:
        inputs = self.world.request(lasts=lasts).input
        job = new_job(self.runtime.database, input={**inputs, **columns.pop("more", {})}, **columns)
        submit_job(self.runtime, str(job["id"]))
        return str(job["id"])

    def poll(self, job_id: str) -> dict[str, Any]:
        """What the job is after a poll made due now."""
        with self.runtime.database.write() as tx:
            update_bookkeeping(tx, job_id, {"next_poll_at": tx.now})
        poll_job(self.runtime, job_id)
        return self.job(job_id)

    def polled_home(self, job_id: str) -> dict[str, Any]:
        return read_until(lambda: self.poll(job_id), lambda job: job["state"] in TERMINAL)

    def take_in(self, count: int) -> list[int]:
        """Hands the first webhooks that were sent to our own receiver, as they were sent; its answers."""
        self.world.hook.wait_for(count)
        statuses = []
        for head, raw, headers in zip(self.world.hook.heads, self.world.hook.raw, self.world.hook.headers, strict=True):
            path = head.split(" ")[1].replace("/webhooks/p", f"/webhooks/{PROVIDER}")
            statuses.append(call(self.app, path, body=raw, headers=headers).status)
        drain(self.runtime)
        return statuses


Build = Callable[..., Stage]


@pytest.fixture
def build(sqlite_url: str) -> Iterator[Build]:
    """A stage whose clock is the machine's, as the signatures of the simulator are."""
    with ExitStack() as opened:

        def start(speaker: Speaker, **faults: Any) -> Stage:
            hook = opened.enter_context(receiving())
            plan = EveryRun(Faults(**faults)) if faults else None
            world = opened.enter_context(world_of(speaker, hook, plan))
            database = Database.connect(sqlite_url, clock=SystemClock())
            opened.callback(database.close)
            entry = ProviderEntry(PROVIDER, world.config, world.config.policy, world.adapter)
            environ = {"HOMING_PUBLIC_URL": hook.url}
            runtime = a_runtime(database, providers={PROVIDER: entry}, environ=environ)
            intake = build_intake(runtime)
            opened.callback(intake.stop)
            return Stage(world, runtime, intake, an_app(runtime, intake, door="hot"))

        yield start


every_provider = pytest.mark.parametrize("speaker", SPEAKERS, ids=[speaker.name for speaker in SPEAKERS])


@every_provider
def test_a_job_comes_home_by_polls_alone(build: Build, speaker: Speaker) -> None:
    stage = build(speaker, webhook=Fault.DROPPED)

    job = stage.polled_home(stage.submitted())

    assert (job["state"], job["review_reason"]) == ("succeeded", None)
    assert job["output"]
    assert stage.world.ledger["runs_billed"] == 1


@every_provider
def test_a_job_comes_home_by_its_webhook(build: Build, speaker: Speaker) -> None:
    stage = build(speaker)
    job_id = stage.submitted()

    assert set(stage.take_in(len(speaker.events))) == {200}

    job = stage.job(job_id)
    if speaker.is_hint:
        assert job["next_poll_at"] <= stage.runtime.clock.now()
        job = stage.poll(job_id)
    assert job["state"] == "succeeded"
    assert job["output"]


@every_provider
def test_a_job_is_canceled_where_its_run_is(build: Build, speaker: Speaker) -> None:
    stage = build(speaker)
    job_id = stage.submitted(lasts="3600")

    request_cancel(stage.runtime, job_id, tenant=TENANT)
    cancel_run(stage.runtime, job_id)

    assert stage.polled_home(job_id)["state"] == speaker.cancels_as


@every_provider
def test_a_run_that_exists_is_taken_over(build: Build, speaker: Speaker) -> None:
    stage = build(speaker)
    begun = stage.world.begin()

    job = stage.polled_home(stage.submitted(adopt=begun.id))

    assert (job["state"], job["provider_job_id"]) == ("succeeded", begun.id)
    assert stage.world.ledger["runs_billed"] == 1


@every_provider
def test_a_lost_answer_is_one_run_and_found_where_the_provider_can_tell(build: Build, speaker: Speaker) -> None:
    """F30 d, e: by asking, by the token in the callback, or by a person; never by a second submit."""
    stage = build(speaker, submit=Fault.LOST_ANSWER)
    job_id = stage.submitted()

    if speaker.finds:
        with stage.runtime.database.write() as tx:
            update_bookkeeping(tx, job_id, {"next_submit_at": tx.now})
        submit_job(stage.runtime, job_id)
    else:
        assert stage.job(job_id)["review_reason"] == "ambiguous_submit"
        stage.take_in(len(speaker.events))

    (run,) = stage.world.simulator.provider.runs.list_runs()
    told = speaker.finds or stage.world.adapter.capabilities.callback_per_request
    job = stage.job(job_id)
    assert job["provider_job_id"] == (run.id if told else None)
    assert job["review_reason"] == (None if told else "ambiguous_submit")
    assert stage.world.ledger["runs_billed"] == 1


def test_a_success_without_its_result_has_the_provider_asked(build: Build) -> None:
    stage = build(BY_NAME["fal"])
    job_id = stage.submitted(more={"payload_error": True})

    stage.take_in(1)

    assert stage.job(job_id)["state"] == "pending"
    assert stage.job(job_id)["next_poll_at"] <= stage.runtime.clock.now()
    job = stage.poll(job_id)
    assert job["state"] == "succeeded"
    assert job["output"]["files"]


@pytest.mark.parametrize("fault", [Fault.BADLY_SIGNED, Fault.STALE, Fault.FUTURE])
@every_provider
def test_what_is_signed_wrong_is_refused_and_the_job_comes_home_by_poll(
    build: Build, speaker: Speaker, fault: Fault
) -> None:
    stage = build(speaker, webhook=fault)
    job_id = stage.submitted()

    assert stage.take_in(len(speaker.events))[-1] == 403

    assert stage.job(job_id)["state"] != "succeeded"
    assert stage.polled_home(job_id)["state"] == "succeeded"


@pytest.mark.parametrize("name", [speaker.name for speaker in SPEAKERS if speaker.scheme == "standard-webhooks"])
def test_either_of_two_signatures_will_do(build: Build, name: str) -> None:
    stage = build(BY_NAME[name], webhook=Fault.TWO_SIGNATURES)
    stage.submitted()

    assert set(stage.take_in(len(stage.world.speaker.events))) == {200}


def test_an_unknown_run_is_never_submitted(build: Build) -> None:
    stage = build(BY_NAME["fal"])

    job_id = stage.submitted(adopt=new_id("x", at=stage.runtime.clock.now()))

    assert stage.job(job_id)["error"]["code"] == "unknown_run"
    assert stage.world.ledger["runs_billed"] == 0
