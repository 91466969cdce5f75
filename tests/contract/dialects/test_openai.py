"""The OpenAI dialect, judged by the vendor's own client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import openai
import pytest
from openai import InvalidWebhookSignatureError, OpenAI

from homing.simulator.config import DEMO_SECRET, SimulatorConfig
from homing.simulator.faults import Fault, Faults
from homing.simulator.server import Running, running
from tests.contract.dialects.planning import EveryRun
from tests.contract.dialects.receiver import Receiver, read_until, receiving

SOON = {"duration_s": "0.5"}
LATE = {"duration_s": "3600"}


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def config(hook: Receiver) -> SimulatorConfig:
    return SimulatorConfig(time_scale=0.1, api_token="sk-key", webhook_url=hook.url)


@pytest.fixture
def simulator(config: SimulatorConfig) -> Iterator[Running]:
    with running(config) as now_running:
        yield now_running


@pytest.fixture
def client(simulator: Running) -> Iterator[OpenAI]:
    with a_client(simulator) as opened:
        yield opened


def a_client(simulator: Running, key: str = "sk-key") -> OpenAI:
    return OpenAI(api_key=key, base_url=f"{simulator.url}/openai/v1", webhook_secret=DEMO_SECRET, max_retries=0)


def a_file(client: OpenAI, *, failing: int = 0) -> str:
    bodies = [{"messages": [{"role": "user", "content": f"line {n}"}], "fail": n < failing} for n in range(4)]
    rows = [
        {"custom_id": f"row-{n}", "method": "POST", "url": "/v1/chat/completions", "body": body}
        for n, body in enumerate(bodies)
    ]
    content = "\n".join(json.dumps(row) for row in rows).encode()
    return client.files.create(file=("rows.jsonl", content), purpose="batch").id


def a_batch(client: OpenAI, *, metadata: dict[str, str] = SOON, failing: int = 0) -> str:
    return client.batches.create(
        input_file_id=a_file(client, failing=failing),
        endpoint="/v1/chat/completions",
        completion_window="24h",
        metadata=metadata,
    ).id


def test_a_batch_completes_and_leaves_its_files(client: OpenAI) -> None:
    batch_id = a_batch(client, failing=1)
    done = read_until(lambda: client.batches.retrieve(batch_id), lambda batch: batch.status == "completed")

    assert done.request_counts is not None
    assert (done.request_counts.total, done.request_counts.completed, done.request_counts.failed) == (4, 3, 1)
    output = client.files.content(str(done.output_file_id)).text
    errors = client.files.content(str(done.error_file_id)).text
    assert {json.loads(line)["custom_id"] for line in output.splitlines()} == {"row-1", "row-2", "row-3"}
    assert {json.loads(line)["custom_id"] for line in errors.splitlines()} == {"row-0"}


def test_a_batch_is_canceling_for_a_while(client: OpenAI) -> None:
    batch_id = a_batch(client, metadata=LATE)
    read_until(lambda: client.batches.retrieve(batch_id), lambda batch: batch.status == "in_progress")

    assert client.batches.cancel(batch_id).status == "cancelling"

    done = read_until(lambda: client.batches.retrieve(batch_id), lambda batch: batch.status != "cancelling")
    assert done.status == "cancelled"
    assert done.output_file_id  # in part


def test_a_batch_may_complete_though_it_was_canceling(config: SimulatorConfig) -> None:
    plan = EveryRun(Faults(cancel=Fault.CANCEL_IGNORED))
    with running(replace(config, webhook_url=None), plan=plan) as simulator, a_client(simulator) as client:
        batch_id = a_batch(client, metadata={"duration_s": "2"})

        assert client.batches.cancel(batch_id).status == "cancelling"

        done = read_until(lambda: client.batches.retrieve(batch_id), lambda batch: batch.status != "cancelling")
        assert done.status == "completed"


@pytest.mark.parametrize("end", ["failed", "expired"])
def test_a_batch_may_end_badly(client: OpenAI, end: str) -> None:
    batch_id = a_batch(client, metadata={**SOON, "fail": end})
    done = read_until(lambda: client.batches.retrieve(batch_id), lambda batch: batch.status == end)

    assert bool(done.errors) is (end == "failed")


def test_a_background_response_completes(client: OpenAI) -> None:
    begun = client.responses.create(model="gpt-5", input="a pigeon", background=True, metadata=SOON)
    assert begun.status == "queued"

    done = read_until(lambda: client.responses.retrieve(begun.id), lambda seen: seen.status == "completed")

    assert done.output_text


def test_a_background_response_is_canceled_and_may_stay_incomplete(client: OpenAI) -> None:
    late = client.responses.create(model="gpt-5", input="a pigeon", background=True, metadata=LATE)
    cut = client.responses.create(model="gpt-5", input="x", background=True, metadata={**SOON, "fail": "incomplete"})

    assert client.responses.cancel(late.id).status == "cancelled"
    done = read_until(lambda: client.responses.retrieve(cut.id), lambda seen: seen.status == "incomplete")
    assert done.incomplete_details is not None


def a_tuning(client: OpenAI, **metadata: str) -> str:
    file = client.files.create(file=("train.jsonl", b'{"messages":[]}\n{"messages":[1]}\n'), purpose="fine-tune")
    return client.fine_tuning.jobs.create(model="gpt-4.1-mini", training_file=file.id, metadata=metadata).id


def test_a_fine_tuning_job_succeeds_and_is_found_by_its_metadata(client: OpenAI) -> None:
    job_id = a_tuning(client, **SOON, job="a")
    a_tuning(client, **SOON, job="b")

    done = read_until(lambda: client.fine_tuning.jobs.retrieve(job_id), lambda job: job.status == "succeeded")
    found = [job.id for job in client.fine_tuning.jobs.list(metadata={"job": "a"})]

    assert str(done.fine_tuned_model).startswith("ft:gpt-4.1-mini")
    assert client.files.content(done.result_files[0]).json()["epochs"] == 200
    assert found == [job_id]


def test_a_fine_tuning_job_is_canceled_and_fails_with_a_reason(client: OpenAI) -> None:
    late, bad = a_tuning(client, **LATE), a_tuning(client, **SOON, fail="no such model")

    assert client.fine_tuning.jobs.cancel(late).status == "cancelled"
    done = read_until(lambda: client.fine_tuning.jobs.retrieve(bad), lambda job: job.status == "failed")
    assert done.error is not None
    assert done.error.message == "no such model"


def test_batches_are_listed_by_page(client: OpenAI) -> None:
    ids = [a_batch(client) for _ in range(3)]

    assert [batch.id for batch in client.batches.list(limit=2)] == ids[::-1]


def test_events_are_thin_and_pass_the_vendors_verifier(client: OpenAI, hook: Receiver) -> None:
    batch_id = a_batch(client)
    response = client.responses.create(model="gpt-5", input="x", background=True, metadata=SOON)
    job_id = a_tuning(client, **SOON)

    hook.wait_for(3)
    events = [client.webhooks.unwrap(raw, head) for raw, head in zip(hook.raw, hook.headers, strict=True)]

    assert {(event.type, event.data.id) for event in events} == {
        ("batch.completed", batch_id),
        ("response.completed", response.id),
        ("fine_tuning.job.succeeded", job_id),
    }
    assert all(set(body["data"]) == {"id"} for body in hook.bodies)


@pytest.mark.parametrize("fault", [Fault.BADLY_SIGNED, Fault.STALE, Fault.FUTURE])
def test_the_vendors_verifier_refuses_what_is_signed_wrong(
    config: SimulatorConfig, hook: Receiver, fault: Fault
) -> None:
    with running(config, plan=EveryRun(Faults(webhook=fault))) as simulator, a_client(simulator) as client:
        a_batch(client)
        hook.wait_for(1)

        with pytest.raises((InvalidWebhookSignatureError, ValueError)):
            client.webhooks.unwrap(hook.raw[0], hook.headers[0])


def test_the_vendors_verifier_takes_either_of_two_signatures(config: SimulatorConfig, hook: Receiver) -> None:
    plan = EveryRun(Faults(webhook=Fault.TWO_SIGNATURES))
    with running(config, plan=plan) as simulator, a_client(simulator) as client:
        a_batch(client)
        hook.wait_for(1)

        assert client.webhooks.unwrap(hook.raw[0], hook.headers[0]).type == "batch.completed"


def test_a_copy_has_the_same_id_and_the_same_bytes(config: SimulatorConfig, hook: Receiver) -> None:
    plan = EveryRun(Faults(webhook=Fault.DUPLICATED))
    with running(config, plan=plan) as simulator, a_client(simulator) as client:
        a_batch(client)
        first, second = hook.wait_for(2)

    assert first == second
    assert hook.headers[0]["webhook-id"] == hook.headers[1]["webhook-id"] == first["id"]


def test_refusals_come_up_as_the_vendors_errors(simulator: Running, client: OpenAI) -> None:
    with pytest.raises(openai.AuthenticationError):
        a_client(simulator, "other").batches.retrieve("batch_x")
    with pytest.raises(openai.NotFoundError):
        client.batches.retrieve("batch_x")
    with pytest.raises(openai.BadRequestError):
        client.batches.create(input_file_id="file-x", endpoint="/v1/responses", completion_window="24h")
    done = client.responses.create(model="gpt-5", input="x", background=True, metadata=LATE)
    client.responses.cancel(done.id)
    with pytest.raises(openai.ConflictError):
        client.responses.cancel(done.id)


def test_the_vendors_client_sends_a_lost_submit_again(config: SimulatorConfig) -> None:
    """F30: without an idempotency key, so that each is a run."""
    with running(config, plan=EveryRun(Faults(submit=Fault.LOST_ANSWER))) as simulator:
        with a_client(simulator) as client, pytest.raises(openai.APIConnectionError):
            client.with_options(max_retries=2).responses.create(model="gpt-5", input="x", background=True)

        submits = simulator.provider.ledger.snapshot()
    assert submits["runs_billed"] == 3
    assert {entry["key"] for entry in submits["submits"]} == {None}


def a_streamed_response(client: OpenAI, **metadata: str) -> tuple[str, str, int]:
    """A response of which a client heard the beginning: its id, what was heard, and how far."""
    told = client.responses.create(
        model="gpt", input="Tauben über Köln 🕊", background=True, stream=True, metadata={**SOON, **metadata}
    )
    heard, response_id, number = "", "", -1
    with told:
        for event in told:
            number = event.sequence_number
            if event.type == "response.created":
                response_id = event.response.id
            if event.type == "response.output_text.delta":
                heard += event.delta
            if number == 20:
                break
    return response_id, heard, number


def test_the_vendors_client_hears_the_text_and_picks_it_up_where_it_left(client: OpenAI) -> None:
    response_id, heard, number = a_streamed_response(client)

    rest = list(client.responses.retrieve(response_id, stream=True, starting_after=number))

    heard += "".join(event.delta for event in rest if event.type == "response.output_text.delta")
    assert [event.sequence_number for event in rest] == list(range(21, 68))
    assert rest[-1].type == "response.completed"
    assert client.responses.retrieve(response_id).output_text == heard


def test_the_vendors_client_puts_the_response_together_from_its_events(client: OpenAI) -> None:
    response_id, _heard, _number = a_streamed_response(client)

    with client.responses.stream(response_id=response_id) as told:
        list(told)
        put_together = told.get_final_response()

    assert put_together.output_text == client.responses.retrieve(response_id).output_text


@pytest.mark.parametrize("fail", ["out of ink", "incomplete"])
def test_a_response_that_fails_ends_its_stream(client: OpenAI, fail: str) -> None:
    response_id, _heard, _number = a_streamed_response(client, fail=fail)

    *_others, last = client.responses.retrieve(response_id, stream=True)

    assert last.type == ("response.incomplete" if fail == "incomplete" else "response.failed")


def test_a_response_without_a_stream_cannot_be_listened_to(client: OpenAI) -> None:
    response_id = client.responses.create(model="gpt", input="x", background=True).id

    with pytest.raises(openai.BadRequestError, match="stream=true"):
        client.responses.retrieve(response_id, stream=True)
