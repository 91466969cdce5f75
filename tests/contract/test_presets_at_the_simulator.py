"""Luma and Higgsfield as presets, against the dialects that the vendors' own clients are content with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from homing.simulator import SimulatorConfig, running
from jobs.clock import SystemClock
from jobs.core.states import TERMINAL, JobState
from jobs.net.http import HttpClient
from jobs.providers.port import AlreadyFinished, Gone, KeyReused, Provider, Report, SubmitRequest
from jobs.providers.registry import build_adapter
from tests.contract.vendor_server import CREDENTIAL, an_entry
from tests.services.waiting import wait_until

Open = Callable[[str], Provider]

PATHS = {"luma": "/luma/dream-machine/v1", "higgsfield": "/higgsfield"}
MODELS: dict[str, dict[str, object]] = {
    "luma": {"model": "ray-2"},
    "higgsfield": {"model": "higgsfield-ai/soul/standard"},
}
both = pytest.mark.parametrize("preset", sorted(PATHS))


@pytest.fixture
def open_preset() -> Iterator[Open]:
    with ExitStack() as opened:

        def start(preset: str) -> Provider:
            simulator = opened.enter_context(running(SimulatorConfig(time_scale=0.02, api_token=CREDENTIAL)))
            client = HttpClient()
            opened.callback(client.close)
            entry = an_entry(preset, {"base_url": simulator.url + PATHS[preset], "webhook_secrets": []})
            return build_adapter(entry, client, SystemClock())

        yield start


def a_request(preset: str, *, token: str = "token-1", key: str = "key-1", **more: object) -> SubmitRequest:
    inputs = {**MODELS[preset], "prompt": "a pigeon", **more}
    return SubmitRequest(inputs, key, token, f"http://127.0.0.1:9/webhooks/p/{token}")  # type: ignore[arg-type]


def begin(provider: Provider, request: SubmitRequest) -> str:
    run = provider.submit(request).provider_job_id
    assert run is not None
    return run


def read_to_end(provider: Provider, run: str) -> Report:
    wait_until(lambda: provider.status(run).state in TERMINAL, within_s=10, what=f"the end of {run}")
    return provider.status(run)


@both
def test_a_run_comes_home_with_its_result(open_preset: Open, preset: str) -> None:
    provider = open_preset(preset)

    report = read_to_end(provider, begin(provider, a_request(preset, duration_s=1)))

    assert report.state is JobState.SUCCEEDED
    assert report.output
    assert len(report.links) == 1
    assert report.links[0].url.startswith("http://")


@both
def test_a_failure_says_why(open_preset: Open, preset: str) -> None:
    provider = open_preset(preset)

    report = read_to_end(provider, begin(provider, a_request(preset, duration_s=0, fail="nsfw")))

    assert report.state is JobState.FAILED
    assert report.error is not None
    assert "nsfw" in report.error.message


@both
def test_a_run_nobody_began_is_gone(open_preset: Open, preset: str) -> None:
    with pytest.raises(Gone):
        open_preset(preset).status("nobody")


def test_luma_is_searched_by_the_token_in_the_callback_url(open_preset: Open) -> None:
    provider = open_preset("luma")
    run = begin(provider, a_request("luma", token="token-1", duration_s=1000))
    begin(provider, a_request("luma", token="token-2", duration_s=1000))

    found = provider.find(idempotency_key="key-1", token="token-1")

    assert [report.provider_job_id for report in found] == [run]
    assert provider.find(idempotency_key="key-1", token="nobody") == ()


def test_luma_deletes_a_run_at_work_and_leaves_a_finished_one(open_preset: Open) -> None:
    """F34"""
    provider = open_preset("luma")
    open_run = begin(provider, a_request("luma", duration_s=1000))
    done = begin(provider, a_request("luma", duration_s=0))
    read_to_end(provider, done)

    canceled = provider.cancel(open_run)

    assert canceled is not None
    assert canceled.state is JobState.CANCELED
    with pytest.raises(AlreadyFinished):
        provider.cancel(done)
    assert provider.status(done).links


def test_higgsfield_answers_the_same_run_to_the_same_key_and_names_none_to_another_request(open_preset: Open) -> None:
    provider = open_preset("higgsfield")
    run = begin(provider, a_request("higgsfield", duration_s=1000))

    assert begin(provider, a_request("higgsfield", duration_s=1000)) == run
    with pytest.raises(KeyReused):
        provider.submit(a_request("higgsfield", duration_s=999))


def test_higgsfield_says_when_a_cancel_comes_too_late(open_preset: Open) -> None:
    provider = open_preset("higgsfield")
    run = begin(provider, a_request("higgsfield", duration_s=0))
    read_to_end(provider, run)

    with pytest.raises(AlreadyFinished):
        provider.cancel(run)
