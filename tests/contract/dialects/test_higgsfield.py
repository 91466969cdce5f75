"""The Higgsfield dialect, judged by the vendor's own client."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import higgsfield_client
import pytest
import requests
from higgsfield_client import SyncClient

from homing.simulator.config import SimulatorConfig
from homing.simulator.faults import Fault, Faults
from homing.simulator.server import Running, running
from jobs.clock import FakeClock
from jobs.net.http import HttpClient
from jobs.providers.port import KeyReused, SubmitRequest
from jobs.providers.registry import build_adapter
from tests.contract.dialects.receiver import read_until, receiving
from tests.contract.vendor_server import an_entry
from tests.unit.homing.simulator.stage import planned

KEY = "id:secret"
CONFIG = SimulatorConfig(time_scale=0.02, api_token=KEY)
MODEL = "higgsfield-ai/soul/standard"
LONG = {"prompt": "x", "duration_s": 1000}


@pytest.fixture
def simulator() -> Iterator[Running]:
    with running(CONFIG) as now_running:
        yield now_running


@pytest.fixture
def client(simulator: Running) -> Iterator[SyncClient]:
    made = SyncClient(base_url=f"{simulator.url}/higgsfield", api_key=KEY)
    yield made
    made._client.close()


def post(simulator: Running, body: object, *, key: str | None = None, **query: str) -> requests.Response:
    headers = {"Authorization": f"Key {KEY}"} | ({"Idempotency-Key": key} if key else {})
    return requests.post(f"{simulator.url}/higgsfield/{MODEL}", json=body, params=query, headers=headers, timeout=5)


def billed(simulator: Running) -> Any:
    return simulator.provider.ledger.snapshot()["runs_billed"]


def test_the_vendors_client_completes_its_cycle(client: SyncClient) -> None:
    seen: list[object] = []

    result = client.subscribe(MODEL, {"prompt": "a pigeon", "duration_s": 1}, on_queue_update=seen.append)

    assert result["status"] == "completed"
    assert isinstance(seen[-1], higgsfield_client.Completed)
    assert requests.get(result["video"]["url"], timeout=5).content.startswith(b"GIF8")


def test_images_come_as_a_list(client: SyncClient) -> None:
    result = client.submit(MODEL, {"prompt": "a pigeon", "format": "png"}).get()

    assert [requests.get(image["url"], timeout=5).content[:4] for image in result["images"]] == [b"\x89PNG"]


@pytest.mark.parametrize(
    ("fail", "kind"), [("out of memory", higgsfield_client.Failed), ("nsfw", higgsfield_client.NSFW)]
)
def test_a_failure_is_told_from_moderation(client: SyncClient, fail: str, kind: type) -> None:
    request = client.submit(MODEL, {"prompt": "x", "fail": fail, "duration_s": 0})

    assert isinstance(read_until(request.status, lambda seen: isinstance(seen, kind)), kind)


def test_only_what_is_still_queued_can_be_canceled() -> None:
    with running(SimulatorConfig(time_scale=1000, api_token=KEY)) as simulator:
        client = SyncClient(base_url=f"{simulator.url}/higgsfield", api_key=KEY)
        request = client.submit(MODEL, LONG)
        request.cancel()
        status = request.status()
        client._client.close()

    assert isinstance(status, higgsfield_client.Cancelled)


def test_what_is_at_work_cannot_be_canceled(simulator: Running, client: SyncClient) -> None:
    request = client.submit(MODEL, LONG)
    read_until(request.status, lambda seen: isinstance(seen, higgsfield_client.InProgress))

    with pytest.raises(higgsfield_client.HiggsfieldClientError):
        request.cancel()

    assert simulator.provider.ledger.snapshot()["cancels"][0]["answer"] == 400  # type: ignore[index]


def test_a_used_key_answers_its_first_request_whatever_the_order_of_its_fields(simulator: Running) -> None:
    first = post(simulator, {"prompt": "x", "duration_s": 0}, key="k-1", hf_webhook="http://127.0.0.1:1/t")
    again = post(simulator, {"duration_s": 0, "prompt": "x"}, key="k-1", hf_webhook="http://127.0.0.1:1/t")

    assert first.json()["request_id"] == again.json()["request_id"]
    assert billed(simulator) == 1


@pytest.mark.parametrize(
    ("body", "hook"),
    [({"prompt": "y"}, "http://127.0.0.1:1/t"), ({"prompt": "x"}, "http://127.0.0.1:1/u")],
    ids=["another body", "another webhook"],
)
def test_a_used_key_with_another_request_is_refused(simulator: Running, body: object, hook: str) -> None:
    post(simulator, {"prompt": "x"}, key="k-1", hf_webhook="http://127.0.0.1:1/t")

    assert post(simulator, body, key="k-1", hf_webhook=hook).status_code == 422
    assert billed(simulator) == 1


def test_a_refused_request_does_not_use_up_its_key(simulator: Running) -> None:
    assert post(simulator, ["no object"], key="k-1").status_code == 422
    assert post(simulator, {"prompt": "x"}, key="k-1").status_code == 200


@pytest.mark.parametrize("key", ["a b", "k" * 256])
def test_a_key_is_visible_ascii_up_to_255_characters(simulator: Running, key: str) -> None:
    assert post(simulator, {"prompt": "x"}, key=key).status_code == 422
    assert billed(simulator) == 0


def test_ends_alone_are_told_unsigned(simulator: Running, client: SyncClient) -> None:
    with receiving() as receiver:
        request = client.submit(MODEL, {"prompt": "x", "duration_s": 0}, webhook_url=f"{receiver.url}/t-1")
        (told,) = receiver.wait_for(1)

    assert (told["request_id"], told["status"]) == (request.request_id, "completed")
    assert told["video"]["url"].startswith(simulator.url)
    assert "signature" not in receiver.heads[0].lower()


def test_a_hook_is_tried_until_it_takes_the_event(simulator: Running, client: SyncClient) -> None:
    with receiving("503 Busy") as receiver:
        client.submit(MODEL, {"prompt": "x", "duration_s": 0}, webhook_url=receiver.url)
        receiver.wait_for(2)
        receiver.status = "204 No Content"
        tries = read_until(
            lambda: [entry["answer"] for entry in simulator.provider.ledger.snapshot()["webhooks"]],  # type: ignore[attr-defined]
            lambda seen: 204 in seen,
        )

    assert (set(tries[:-1]), tries[-1]) == ({503}, 204)


def test_after_a_lost_answer_the_key_names_the_run() -> None:
    """F30: the key is what Homing sends and the vendor's client does not."""
    lost = planned(Faults(submit=Fault.LOST_ANSWER), {"model": "video", "prompt": "x"})
    with running(CONFIG, plan=lost) as simulator:
        with pytest.raises(requests.ConnectionError):
            post(simulator, {"prompt": "x"}, key="k-1")
        again = post(simulator, {"prompt": "x"}, key="k-1")

        assert again.json()["request_id"]
        assert billed(simulator) == 1


def test_a_key_that_another_request_used_means_that_a_run_exists(simulator: Running, clock: FakeClock) -> None:
    """F30: after a change of our public address the same attempt is another request to Higgsfield."""
    entry = {"base_url": f"{simulator.url}/higgsfield", "api_token": KEY, "webhook_scheme": "none"}
    client = HttpClient()
    adapter = build_adapter(an_entry("higgsfield", entry), client, clock)
    first = SubmitRequest({"model": MODEL, "prompt": "x"}, "k-1", "t-1", "http://old.example/webhooks/p/t-1")

    begun = adapter.submit(first).provider_job_id
    replayed = adapter.submit(first).provider_job_id
    with pytest.raises(KeyReused):
        adapter.submit(replace(first, callback_url="http://new.example/webhooks/p/t-1"))
    client.close()

    assert begun == replayed
    assert billed(simulator) == 1
