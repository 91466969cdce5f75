"""One suite for the provider port: the fake that other tests trust, the simulator's adapter, and its description."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from homing.simulator import SimulatorConfig, running
from jobs.clock import FakeClock, SystemClock
from jobs.config.providers import ProviderConfig
from jobs.core.errors import Unusable
from jobs.core.states import TERMINAL, JobState
from jobs.net.http import HttpClient
from jobs.providers.declarative import DeclarativeProvider
from jobs.providers.port import AlreadyFinished, Gone, KeyReused, KeyUse, Provider, SubmitRequest
from jobs.providers.simulator import SimulatorProvider
from tests.fakes.descriptions import simulator_entry
from tests.fakes.provider import REPLAY, FakeProvider
from tests.services.waiting import wait_until

_numbers = itertools.count(1)


@dataclass
class World:
    """A provider and the means to lead a run to its end."""

    provider: Provider
    finish: Callable[[str], object]


def a_request(**changes: object) -> SubmitRequest:
    number = next(_numbers)
    request = SubmitRequest(
        {"model": "transcribe", "text": "every job comes home", "duration_s": 0.2},
        idempotency_key=f"key-{number}",
        token=f"token-{number}",
        callback_url="http://127.0.0.1:9/webhooks/renders/t",
    )
    return replace(request, **changes)  # type: ignore[arg-type]


def a_long_request() -> SubmitRequest:
    return a_request(input={"model": "transcribe", "text": "slow", "duration_s": 3600})


@pytest.fixture(params=[KeyUse.REPLAY])
def keys(request: pytest.FixtureRequest) -> KeyUse:
    use: KeyUse = request.param
    return use


@pytest.fixture(params=["fake", "simulator", "declarative"])
def world(request: pytest.FixtureRequest, keys: KeyUse) -> Iterator[World]:
    """The same contract, once in memory and twice over HTTP: by an adapter in code, and by one in TOML."""
    if request.param == "fake":
        fake = FakeProvider(FakeClock(), replace(REPLAY, keys=keys, search=True))
        yield World(fake, fake.finish)
        return
    with running(SimulatorConfig(idempotency=keys.value, api_token="t0ken")) as simulator:
        client = HttpClient()
        adapter = _adapter(request.param, simulator.url, keys=keys, client=client)
        yield World(adapter, lambda run: _wait_for_end(adapter, run))
        client.close()


def _adapter(kind: str, url: str, *, keys: KeyUse, client: HttpClient) -> Provider:
    if kind == "declarative":
        return DeclarativeProvider(simulator_entry(url, keys.value), client, SystemClock())
    entry = ProviderConfig(
        adapter="simulator",
        base_url=url,
        webhook_scheme="standard-webhooks",
        api_token="t0ken",
        idempotency=keys.value,
    )
    return SimulatorProvider(entry, client, SystemClock())


def _wait_for_end(provider: Provider, run: str) -> None:
    wait_until(lambda: provider.status(run).state in TERMINAL, within_s=10, what=f"the end of {run}")


def begin(world: World, request: SubmitRequest | None = None) -> str:
    run = world.provider.submit(request or a_request()).provider_job_id
    assert run is not None
    return run


def test_it_says_what_may_be_assumed_of_it(world: World, keys: KeyUse) -> None:
    assert world.provider.capabilities.keys is keys
    assert world.provider.capabilities.search
    assert world.provider.capabilities.key_window == timedelta(hours=24)


def test_two_submits_are_two_runs(world: World) -> None:
    assert begin(world) != begin(world)


def test_a_replayed_key_is_the_same_run(world: World) -> None:
    request = a_request()
    run = begin(world, request)

    assert begin(world, request) == run


def test_a_replayed_key_of_a_run_that_ended_claims_no_end_without_its_result(world: World) -> None:
    request = a_request()
    run = begin(world, request)
    world.finish(run)

    report = world.provider.submit(request)

    assert report.provider_job_id == run
    assert report.state not in TERMINAL


@pytest.mark.parametrize("keys", [KeyUse.REJECT], indirect=True)
def test_a_rejected_key_says_that_a_run_exists(world: World) -> None:
    request = a_request()
    begin(world, request)

    with pytest.raises(KeyReused):
        world.provider.submit(request)


@pytest.mark.parametrize("keys", [KeyUse.NONE], indirect=True)
def test_an_ignored_key_begins_another_run(world: World) -> None:
    request = a_request()

    assert begin(world, request) != begin(world, request)
    assert len(world.provider.find(idempotency_key=request.idempotency_key, token=request.token)) == 2


def test_a_run_is_found_by_its_token_and_by_its_key(world: World) -> None:
    request = a_request()
    run = begin(world, request)
    begin(world)

    by_token = world.provider.find(idempotency_key="nobody's", token=request.token)
    by_key = world.provider.find(idempotency_key=request.idempotency_key, token="nobody's")

    assert [report.provider_job_id for report in by_token] == [run]
    assert [report.provider_job_id for report in by_key] == [run]


def test_what_was_never_submitted_is_not_found(world: World) -> None:
    begin(world)

    assert world.provider.find(idempotency_key="nobody's", token="nobody's") == ()


def test_a_new_run_is_pending_or_at_work(world: World) -> None:
    report = world.provider.status(begin(world, a_long_request()))

    assert report.state in (JobState.PENDING, JobState.RUNNING)
    assert report.unknown_status is None


def test_a_run_that_ended_brings_its_result(world: World) -> None:
    run = begin(world)
    world.finish(run)

    report = world.provider.status(run)

    assert (report.provider_job_id, report.state) == (run, JobState.SUCCEEDED)
    assert report.output
    assert report.cost is not None
    assert report.error is None


def test_a_run_nobody_began_is_gone(world: World) -> None:
    with pytest.raises(Gone):
        world.provider.status("p-nobody")
    with pytest.raises(Gone):
        world.provider.cancel("p-nobody")


def test_a_cancel_ends_a_run(world: World) -> None:
    run = begin(world, a_long_request())

    report = world.provider.cancel(run)

    assert report is None or report.state is JobState.CANCELED
    assert world.provider.status(run).state is JobState.CANCELED


def test_a_cancel_after_the_end_says_so(world: World) -> None:
    run = begin(world)
    world.finish(run)

    with pytest.raises(AlreadyFinished):
        world.provider.cancel(run)


def test_an_event_is_read_without_the_network(world: World) -> None:
    report = world.provider.read_webhook({"id": "evt_1", "job": "p-1", "status": "succeeded"}, {}).report

    assert report is not None
    assert (report.provider_job_id, report.state) == ("p-1", JobState.SUCCEEDED)


def test_an_event_of_another_kind_is_of_no_interest(world: World) -> None:
    webhook = world.provider.read_webhook({"id": "evt_1", "type": "billing.balance.updated"}, {})

    assert webhook.report is None
    assert webhook.ignored_because


def test_an_event_that_is_no_object_is_unusable(world: World) -> None:
    with pytest.raises(Unusable):
        world.provider.read_webhook(["p-1"], {})
