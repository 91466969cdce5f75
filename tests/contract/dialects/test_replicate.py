"""The Replicate dialect, judged by the vendor's own client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import replicate
import requests
from replicate.exceptions import ModelError, ReplicateError
from replicate.webhook import InvalidSignatureError, InvalidTimestampError, Webhooks

from homing.simulator.config import SimulatorConfig
from homing.simulator.faults import Fault, Faults
from homing.simulator.server import Running, running
from tests.contract.dialects.planning import EveryRun
from tests.contract.dialects.receiver import read_until, receiving

CONFIG = SimulatorConfig(time_scale=0.1, api_token="r8_key")
MODEL = "homing/video"
INPUT = {"prompt": "a pigeon flies home", "duration_s": 0.5}


@pytest.fixture
def simulator() -> Iterator[Running]:
    with running(CONFIG) as now_running:
        yield now_running


def a_client(simulator: Running, token: str = "r8_key") -> replicate.Client:
    client = replicate.Client(api_token=token, base_url=f"{simulator.url}/replicate")
    client.poll_interval = 0.05
    return client


def test_the_vendors_client_completes_its_cycle(simulator: Running) -> None:
    client = a_client(simulator)

    prediction = client.predictions.create(version="5c7d5dc6", input=INPUT)
    assert prediction.status == "starting"
    prediction.wait()

    assert prediction.status == "succeeded"
    assert requests.get(prediction.output[0], timeout=5).content.startswith(b"\x89PNG")
    assert [found.id for found in client.predictions.list()] == [prediction.id]


def test_a_model_and_a_deployment_are_run_in_one_call(simulator: Running) -> None:
    client = a_client(simulator)

    (url,) = client.run(MODEL, input=INPUT)
    deployed = client.deployments.predictions.create("homing/render", input=INPUT)
    deployed.wait()

    assert requests.get(url, timeout=5).content.startswith(b"\x89PNG")
    assert deployed.status == "succeeded"


def test_a_training_completes(simulator: Running) -> None:
    client = a_client(simulator)

    training = client.trainings.create("homing/linear:v1", {"duration_s": 0.1}, "me/linear")
    done = read_until(lambda: client.trainings.get(training.id), lambda seen: seen.status == "succeeded")

    assert done.output


def test_the_vendors_client_hears_the_text_while_it_is_written(simulator: Running) -> None:
    client = a_client(simulator)
    fields = {"prompt": "Tauben über Köln 🕊", "duration_s": 0.5, "max_tokens": 30}

    told = list(client.stream("homing/llm-stream", input=fields))

    assert [str(event.event.value) for event in told] == ["output"] * 30 + ["done"]
    (prediction,) = client.predictions.list()
    assert "".join(map(str, told)) == prediction.output


def test_the_vendors_client_hears_of_a_failure(simulator: Running) -> None:
    told = a_client(simulator).stream(
        "homing/llm-stream", input={"prompt": "x", "fail": "out of ink", "duration_s": 0.1}
    )

    with pytest.raises(RuntimeError, match="out of ink"):
        list(told)


def test_a_model_that_writes_no_text_has_no_stream(simulator: Running) -> None:
    with pytest.raises(ReplicateError, match="does not stream"):
        list(a_client(simulator).stream(MODEL, input=INPUT))


def test_a_failure_carries_its_words(simulator: Running) -> None:
    with pytest.raises(ModelError) as caught:
        a_client(simulator).run(MODEL, input={**INPUT, "fail": "out of paint"})

    assert caught.value.prediction.error == "out of paint"


def test_a_cancel_ends_a_prediction(simulator: Running) -> None:
    client = a_client(simulator)
    prediction = client.predictions.create(version="5c7d5dc6", input={**INPUT, "duration_s": 3600})

    prediction.cancel()

    assert client.predictions.get(prediction.id).status == "canceled"


def test_the_vendors_client_stumbles_over_aborted(simulator: Running) -> None:
    """F24: the word that its own client does not know is said here as the vendor says it."""
    client = a_client(simulator)
    begun = client.predictions.create(version="5c7d5dc6", input={"duration_s": 0, "fail": "aborted", "prompt": "x"})
    url = f"{simulator.url}/replicate/v1/predictions/{begun.id}"
    shown = read_until(
        lambda: requests.get(url, headers={"Authorization": "Bearer r8_key"}, timeout=5).json(),
        lambda seen: seen["completed_at"] is not None,
    )

    assert shown["status"] == "aborted"
    with pytest.raises(ValueError, match="status"):
        client.predictions.get(begun.id)


def test_webhooks_are_the_prediction_and_pass_the_vendors_verifier(simulator: Running) -> None:
    client = a_client(simulator)
    secret = client.webhooks.default.secret()

    with receiving() as hook:
        begun = client.predictions.create(
            version="5c7d5dc6", input=INPUT, webhook=hook.url, webhook_events_filter=["start", "completed"]
        )
        started, completed = hook.wait_for(2)
        for raw, headers in zip(hook.raw, hook.headers, strict=True):
            Webhooks.validate(headers=headers, body=raw.decode(), secret=secret, tolerance=300)

    assert [body["status"] for body in (started, completed)] == ["processing", "succeeded"]
    assert {body["id"] for body in (started, completed)} == {begun.id}


@pytest.mark.parametrize(
    ("fault", "refusal"),
    [(Fault.BADLY_SIGNED, InvalidSignatureError), (Fault.STALE, InvalidTimestampError), (Fault.TWO_SIGNATURES, None)],
)
def test_the_faults_of_signatures_are_what_the_vendors_verifier_takes_them_for(
    fault: Fault, refusal: type[Exception] | None
) -> None:
    with running(CONFIG, plan=EveryRun(Faults(webhook=fault))) as simulator, receiving() as hook:
        client = a_client(simulator)
        secret = client.webhooks.default.secret()
        client.predictions.create(
            version="5c7d5dc6", input=INPUT, webhook=hook.url, webhook_events_filter=["completed"]
        )
        hook.wait_for(1)

    arguments = {"headers": hook.headers[0], "body": hook.raw[0].decode(), "secret": secret}
    if refusal is None:
        Webhooks.validate(**arguments, tolerance=300)
    else:
        with pytest.raises(refusal):
            Webhooks.validate(**arguments, tolerance=300)


def test_the_last_retry_comes_a_minute_after_the_end_and_then_there_is_silence() -> None:
    config = SimulatorConfig(time_scale=0.002)
    with running(config) as simulator, receiving("500 Oops") as hook:
        client = a_client(simulator)
        client.predictions.create(version="5c7d5dc6", input=INPUT, webhook=hook.url)
        read_until(lambda: simulator.provider.ledger.snapshot()["webhooks"], lambda sent: len(sent) >= 6)

    sent = simulator.provider.ledger.snapshot()["webhooks"]
    assert [entry["attempt"] for entry in sent if entry["status"] == "processing"] == [1]
    assert [entry["attempt"] for entry in sent if entry["status"] == "succeeded"] == [1, 2, 3, 4, 5]


def test_a_hook_that_moved_is_not_followed(simulator: Running) -> None:
    with receiving("301 Moved") as hook:
        begun = a_client(simulator).predictions.create(
            version="5c7d5dc6", input=INPUT, webhook=hook.url, webhook_events_filter=["start"]
        )
        hook.wait_for(1)
        begun.wait()

    assert len(hook.bodies) == 1


def test_a_lost_answer_is_a_run_all_the_same() -> None:
    with running(CONFIG, plan=EveryRun(Faults(submit=Fault.LOST_ANSWER))) as simulator:
        client = a_client(simulator)
        with pytest.raises(Exception, match="disconnected"):
            client.predictions.create(version="5c7d5dc6", input=INPUT)

        assert simulator.provider.ledger.snapshot()["runs_billed"] == 1


def test_a_stranger_and_a_wrong_request_are_told_so_in_the_vendors_words(simulator: Running) -> None:
    for act in (
        lambda: a_client(simulator, "other").predictions.get("x"),
        lambda: a_client(simulator).predictions.get("x"),
        lambda: a_client(simulator).predictions.create(version="5c7d5dc6", input="no object"),
    ):
        with pytest.raises(ReplicateError) as caught:
            act()
        assert caught.value.detail
