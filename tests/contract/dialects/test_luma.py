"""The Luma dialect, judged by the vendor's own client."""

from __future__ import annotations

from collections.abc import Iterator

import lumaai
import pytest
import requests
from lumaai import LumaAI

from homing.simulator.config import SimulatorConfig
from homing.simulator.faults import Fault, Faults
from homing.simulator.server import Running, running
from tests.contract.dialects.receiver import read_until, receiving
from tests.unit.homing.simulator.stage import planned

CONFIG = SimulatorConfig(time_scale=0.02, api_token="luma-key")
LONG = {"duration_s": 1000}


@pytest.fixture
def simulator() -> Iterator[Running]:
    with running(CONFIG) as now_running:
        yield now_running


def a_client(simulator: Running, token: str = "luma-key") -> LumaAI:
    return LumaAI(auth_token=token, base_url=f"{simulator.url}/luma/dream-machine/v1", max_retries=0)


def test_the_vendors_client_completes_its_cycle(simulator: Running) -> None:
    with a_client(simulator) as client:
        created = client.generations.create(model="ray-2", prompt="a pigeon", extra_body={"duration_s": 1})
        assert (created.state, created.assets) == ("queued", None)

        done = read_until(lambda: client.generations.get(str(created.id)), lambda seen: seen.state == "completed")

    assert done.assets is not None
    assert requests.get(str(done.assets.video), timeout=5).content.startswith(b"GIF8")
    assert (done.generation_type, done.model) == ("video", "ray-2")


def test_an_image_is_made_the_same_way(simulator: Running) -> None:
    with a_client(simulator) as client:
        created = client.generations.image.create(model="photon-1", prompt="a pigeon")
        done = read_until(lambda: client.generations.get(str(created.id)), lambda seen: seen.state == "completed")

    assert done.assets is not None
    assert requests.get(str(done.assets.image), timeout=5).content.startswith(b"\x89PNG")


def test_a_failure_names_its_reason(simulator: Running) -> None:
    with a_client(simulator) as client:
        created = client.generations.create(
            model="ray-2", prompt="x", extra_body={"fail": "moderated", "duration_s": 0}
        )
        failed = read_until(lambda: client.generations.get(str(created.id)), lambda seen: seen.state == "failed")

    assert failed.failure_reason == "moderated"


def test_the_list_repeats_each_request_newest_first(simulator: Running) -> None:
    with a_client(simulator) as client:
        for name in "abc":
            client.generations.create(model="ray-2", prompt=name, callback_url=f"http://127.0.0.1:1/{name}")
        page = client.generations.list(limit=2)
        rest = client.generations.list(limit=2, offset=2)

    assert [item.request.callback_url for item in page.generations if item.request] == [
        "http://127.0.0.1:1/c",
        "http://127.0.0.1:1/b",
    ]
    assert (page.has_more, rest.has_more, len(rest.generations)) == (True, False, 1)


def test_a_deleted_generation_is_gone(simulator: Running) -> None:
    with a_client(simulator) as client:
        created = client.generations.create(model="ray-2", prompt="x", extra_body=LONG)

        client.generations.delete(str(created.id))

        with pytest.raises(lumaai.NotFoundError):
            client.generations.get(str(created.id))
        assert client.generations.list().generations == []


def test_the_door_is_shut_to_another_key(simulator: Running) -> None:
    with a_client(simulator, token="nobody's") as client, pytest.raises(lumaai.AuthenticationError):
        client.generations.list()


def test_every_change_is_told_unsigned_at_the_urls_own_address(simulator: Running) -> None:
    with a_client(simulator) as client, receiving() as receiver:
        created = client.generations.create(model="ray-2", prompt="x", callback_url=f"{receiver.url}/t-1")
        told = receiver.wait_for(2)

    assert [(body["id"], body["state"]) for body in told] == [(created.id, "dreaming"), (created.id, "completed")]
    assert told[1]["assets"]["video"].startswith(simulator.url)
    assert not any("signature" in head.lower() for head in receiver.heads)


def test_nothing_but_a_200_is_taken_for_yes_and_three_more_tries_are_made(simulator: Running) -> None:
    with a_client(simulator) as client, receiving("204 No Content") as receiver:
        client.generations.create(model="ray-2", prompt="x", callback_url=receiver.url, extra_body=LONG)
        receiver.wait_for(4)
        tries = read_until(lambda: simulator.provider.ledger.snapshot()["webhooks"], lambda seen: len(seen) == 4)

    assert [entry["answer"] for entry in tries] == [204] * 4


def test_a_client_that_tries_again_after_a_lost_answer_is_billed_twice() -> None:
    """F30: the vendor's client sends no key, and there is none to send."""
    lost = planned(Faults(submit=Fault.LOST_ANSWER), {"model": "video", "prompt": "x"}, runs=2)
    with running(CONFIG, plan=lost) as simulator:
        client = LumaAI(auth_token="luma-key", base_url=f"{simulator.url}/luma/dream-machine/v1", max_retries=1)
        with client, pytest.raises(lumaai.APIConnectionError):
            client.generations.create(model="ray-2", prompt="x")

    assert simulator.provider.ledger.snapshot()["runs_billed"] == 2
