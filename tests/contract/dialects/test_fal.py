"""The fal dialect, judged by the vendor's own client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import fal_client
import pytest
import requests
from fal_client import Completed, FalClientHTTPError, InProgress, Queued, SyncClient

from homing.simulator.config import SimulatorConfig
from homing.simulator.faults import Fault, Faults
from homing.simulator.server import Running, running
from jobs.core.errors import Expired, FromFuture, Mismatch
from jobs.core.signatures import verify
from jobs.core.signatures.key_sets import parse_key_set
from tests.contract.dialects.planning import EveryRun
from tests.contract.dialects.receiver import Receiver, read_until, receiving

CONFIG = SimulatorConfig(time_scale=0.1, api_token="fal-key")
APP = "fal-ai/video/fast"
INPUT = {"prompt": "a pigeon flies home", "duration_s": 0.5}
LONG = {**INPUT, "duration_s": 3600}


@pytest.fixture
def simulator(monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    with running(CONFIG) as now_running:
        aim(now_running, monkeypatch)
        yield now_running


def aim(simulator: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fal_client.client.QUEUE_URL_FORMAT", f"{simulator.url}/fal/")


def a_client(key: str = "fal-key") -> SyncClient:
    return fal_client.SyncClient(key=key)


@pytest.mark.usefixtures("simulator")
def test_the_vendors_client_completes_its_cycle() -> None:
    handle = a_client().submit(APP, INPUT)
    seen = list(handle.iter_events(interval=0.02))
    result = handle.get()

    assert isinstance(seen[-1], Completed)
    assert {type(event) for event in seen} <= {Queued, InProgress, Completed}
    (file,) = result["files"]
    assert requests.get(file["url"], timeout=5).content.startswith(b"\x89PNG")
    assert (file["content_type"], file["file_size"]) == ("image/png", len(requests.get(file["url"], timeout=5).content))


@pytest.mark.usefixtures("simulator")
@pytest.mark.parametrize("app", ["fal-ai/video", "fal-ai/video/fast/turbo", "workflows/me/video", "comfy/me/video/x"])
def test_a_run_is_found_by_its_app_without_the_subpath(app: str) -> None:
    client = a_client()
    request_id = client.submit(app, INPUT).request_id

    read_until(lambda: client.status(app, request_id), lambda seen: isinstance(seen, Completed))

    assert client.result(app, request_id)["files"]


@pytest.mark.usefixtures("simulator")
def test_completed_is_not_success() -> None:
    client = a_client()
    handle = client.submit(APP, {**INPUT, "duration_s": 0, "fail": "out of paint"})

    seen = read_until(handle.status, lambda status: isinstance(status, Completed))

    assert isinstance(seen, Completed)
    assert (seen.error, seen.error_type) == ("out of paint", "generation_failed")
    with pytest.raises(FalClientHTTPError, match="out of paint") as caught:
        handle.get()
    assert caught.value.status_code == 422


@pytest.mark.usefixtures("simulator")
def test_a_cancel_is_taken_once() -> None:
    handle = a_client().submit(APP, LONG)

    handle.cancel()

    with pytest.raises(FalClientHTTPError) as caught:
        handle.cancel()
    assert caught.value.status_code == 400
    assert caught.value.response.json() == {"status": "ALREADY_COMPLETED"}


def keys_of(simulator: Running) -> bytes:
    return requests.get(f"{simulator.url}/fal/.well-known/jwks.json", timeout=5).content


def judge(simulator: Running, hook: Receiver) -> None:
    """Our own verifier, under the published keys, as of now."""
    now = datetime.now(UTC)
    keys = parse_key_set(keys_of(simulator))
    verify("fal", headers=hook.headers[0], body=hook.raw[0], secrets=keys, now=now)


def test_the_end_is_told_once_and_signed_under_the_published_key(simulator: Running) -> None:
    with receiving() as hook:
        handle = a_client().submit(APP, INPUT, webhook_url=hook.url)
        (body,) = hook.wait_for(1)

    judge(simulator, hook)
    assert (body["request_id"], body["status"]) == (handle.request_id, "OK")
    assert body["payload"]["files"]
    assert len(hook.bodies) == 1


@pytest.mark.usefixtures("simulator")
def test_a_result_that_fits_no_webhook_is_left_out_of_it() -> None:
    with receiving() as hook:
        a_client().submit(APP, {**INPUT, "payload_error": True}, webhook_url=hook.url)
        (body,) = hook.wait_for(1)

    assert (body["status"], body["payload"]) == ("OK", None)
    assert body["payload_error"]


@pytest.mark.usefixtures("simulator")
def test_a_failure_is_told_as_error() -> None:
    with receiving() as hook:
        a_client().submit(APP, {**INPUT, "fail": "out of paint"}, webhook_url=hook.url)
        (body,) = hook.wait_for(1)

    assert (body["status"], body["error"]) == ("ERROR", "out of paint")


@pytest.mark.parametrize(
    ("fault", "refusal"), [(Fault.BADLY_SIGNED, Mismatch), (Fault.STALE, Expired), (Fault.FUTURE, FromFuture)]
)
def test_the_faults_of_signatures(fault: Fault, refusal: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    with running(CONFIG, plan=EveryRun(Faults(webhook=fault))) as simulator, receiving() as hook:
        aim(simulator, monkeypatch)
        a_client().submit(APP, INPUT, webhook_url=hook.url)
        hook.wait_for(1)

        with pytest.raises(refusal):
            judge(simulator, hook)


def test_the_vendors_client_bills_ten_runs_for_one_lost_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """F30: why no vendor's client stands between Homing and a provider."""
    monkeypatch.setattr("fal_client.client.time.sleep", lambda _seconds: None)
    with running(CONFIG, plan=EveryRun(Faults(submit=Fault.LOST_ANSWER))) as simulator:
        aim(simulator, monkeypatch)
        with pytest.raises(Exception, match="disconnected"):
            a_client().submit(APP, INPUT)

        assert simulator.provider.ledger.snapshot()["runs_billed"] == 10


@pytest.mark.usefixtures("simulator")
def test_a_stranger_and_a_wrong_request_are_told_so_in_the_vendors_words() -> None:
    for act, status in (
        (lambda: a_client("other").submit(APP, INPUT), 401),
        (lambda: a_client().status(APP, "nobody"), 404),
    ):
        with pytest.raises(FalClientHTTPError) as caught:
            act()
        assert caught.value.status_code == status
        assert json.loads(caught.value.response.text)["detail"]
