"""Every adapter that can listen to a run, at the simulator's dialect of its provider: one suite."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from homing.simulator.config import SimulatorConfig
from homing.simulator.faults import Fault, Faults
from homing.simulator.server import Running, running
from jobs.clock import SystemClock
from jobs.config.entries import read_providers
from jobs.config.providers import ADAPTERS
from jobs.config.secret_sources import SecretSources
from jobs.core.errors import Transient, UnknownOutcome
from jobs.core.observations import Json
from jobs.core.states import JobState
from jobs.net.http import HttpClient
from jobs.providers.port import Gone, OutputDelta, Provider, Refused, StreamsOutput, SubmitRequest
from jobs.providers.registry import build_adapter
from tests.contract.dialects.planning import EveryRun
from tests.contract.dialects.receiver import read_until

TOKEN = "sim-token"
PROMPT = "Tauben fliegen über Köln 🕊"


def simulator_input(lasts: float, **more: Json) -> dict[str, Json]:
    return {"model": "llm-stream", "prompt": PROMPT, "max_tokens": 20, "duration_s": lasts, **more}


def replicate_input(lasts: float, **more: Json) -> dict[str, Json]:
    fields: dict[str, Json] = {"prompt": PROMPT, "max_tokens": 20, "duration_s": lasts, **more}
    return {"model": "homing/llm-stream", "stream": True, "input": fields}


def openai_input(lasts: float, **more: Json) -> dict[str, Json]:
    return {"model": "gpt", "input": PROMPT, "stream": True, "metadata": {"duration_s": str(lasts), **more}}


#: The simulator, as somebody would describe it who has never seen its adapter.
DESCRIBED: Mapping[str, object] = {
    "auth": {"header": "Authorization", "value": "Bearer ${secret.token}"},
    "submit": {
        "call": "POST /jobs",
        "body": {"model": "${input.model}", "input": "${input}", "reference": "${attempt.token}"},
        "id": "id",
    },
    "status": {
        "call": "GET /jobs/${job.provider_job_id}",
        "state": "status",
        "states": {
            "pending": ["queued"],
            "running": ["processing"],
            "succeeded": ["succeeded"],
            "failed": ["failed"],
            "canceled": ["canceled"],
        },
        "output": "output",
    },
    "cancel": {"call": "POST /jobs/${job.provider_job_id}/cancel"},
    "stream": {
        "call": "GET /jobs/${job.provider_job_id}/stream",
        "event": "output",
        "text": "text",
        "end": "done",
        "only_if": "model == 'llm-stream'",
        "resume": True,
    },
}


@dataclass(frozen=True)
class Talker:
    """One adapter, in one of its ways to listen."""

    name: str
    adapter: str
    path: str
    input: Callable[..., dict[str, Json]]
    mute: Mapping[str, Json]
    text_of: Callable[[Any], str]
    resumes: bool
    entry: Mapping[str, object] = field(default_factory=dict)


TALKERS = (
    Talker("simulator", "simulator", "", simulator_input, {"model": "video"}, lambda output: output["text"], True),
    Talker(
        "simulator that cannot resume",
        "simulator",
        "",
        simulator_input,
        {"model": "clean"},
        lambda output: output["text"],
        False,
        {"stream_resume": False},
    ),
    Talker(
        "replicate",
        "replicate",
        "/replicate",
        replicate_input,
        {"model": "homing/llm-stream", "input": {"prompt": "x"}},
        lambda output: output,
        False,
    ),
    Talker(
        "openai",
        "openai",
        "/openai/v1",
        openai_input,
        {"model": "gpt", "input": "x"},
        lambda output: output["output"][0]["content"][0]["text"],
        True,
    ),
    Talker(
        "declarative",
        "declarative",
        "",
        simulator_input,
        {"model": "clean"},
        lambda output: output["text"],
        True,
        DESCRIBED,
    ),
)


@dataclass(frozen=True)
class World:
    talker: Talker
    simulator: Running
    adapter: Any  # a Provider that is a StreamsOutput too

    def begin(self, lasts: float = 0.5, **more: Json) -> str:
        inputs = self.talker.input(lasts, **more)
        assert self.adapter.can_follow(inputs)
        run = self.adapter.submit(SubmitRequest(inputs, "key-1", "attempt-1", "http://127.0.0.1:9/hook/attempt-1"))
        return str(self.adapter.capabilities.address(run.provider_job_id, inputs))

    def output_of(self, run: str) -> str:
        read_until(lambda: self.adapter.status(run), lambda report: report.state is JobState.SUCCEEDED)
        return self.talker.text_of(self.adapter.status(run).output)

    @property
    def streams(self) -> list[dict[str, Any]]:
        reads: Any = self.simulator.provider.ledger.snapshot()["reads"]
        return [read for read in reads if read["kind"] == "stream"]


@pytest.fixture(params=TALKERS, ids=[talker.name for talker in TALKERS])
def talker(request: pytest.FixtureRequest) -> Talker:
    chosen: Talker = request.param
    return chosen


@pytest.fixture
def build(talker: Talker) -> Iterator[Callable[..., World]]:
    with ExitStack() as opened:

        def start(**faults: Any) -> World:
            config = SimulatorConfig(time_scale=0.2, api_token=TOKEN, stream_resume=talker.resumes)
            plan = EveryRun(Faults(**faults)) if faults else None
            simulator = opened.enter_context(running(config, plan=plan))
            client = opened.enter_context(closing(HttpClient()))
            return World(talker, simulator, an_adapter(talker, simulator.url, client))

        yield start


@pytest.fixture
def world(build: Callable[..., World]) -> World:
    return build()


def an_adapter(talker: Talker, url: str, client: HttpClient) -> Provider:
    table = {
        "adapter": talker.adapter,
        "base_url": f"{url}{talker.path}",
        "api_token": TOKEN,
        "webhook_scheme": "none",
        **talker.entry,
    }
    faults: list[str] = []
    sources = SecretSources({}, Path(), plain_allowed=True)
    entries = read_providers({"p": table}, adapters=ADAPTERS, secrets=sources, faults=faults)
    assert not faults, faults
    return build_adapter(entries["p"], client, SystemClock())


def joined(told: list[OutputDelta]) -> str:
    return "".join(delta.text for delta in told)


def test_it_is_one_that_can_listen(world: World) -> None:
    assert isinstance(world.adapter, StreamsOutput)
    assert world.adapter.resumes_output is world.talker.resumes


def test_what_it_hears_is_the_output(world: World) -> None:
    run = world.begin()

    told = list(world.adapter.follow_output(run))

    assert joined(told) == world.output_of(run)
    assert len(told) > 5
    assert all(delta.text for delta in told)
    assert all((delta.place is not None) is world.talker.resumes for delta in told)


def test_it_hears_the_same_when_all_has_been_said(world: World) -> None:
    run = world.begin(lasts=0)
    text = world.output_of(run)

    assert joined(list(world.adapter.follow_output(run))) == text


@pytest.mark.parametrize(("trouble", "times"), [(Fault.STREAM_CUT, 2), (Fault.STREAM_SILENT, 1)])
def test_after_a_break_it_goes_on_or_begins_again(build: Callable[..., World], trouble: Fault, times: int) -> None:
    world = build(stream=trouble, times=times)
    run = world.begin()
    told: list[OutputDelta] = []

    for _ in range(times):
        told = listen_on(world, run, told)
    last = list(world.adapter.follow_output(run, after=told[-1].place))
    told = told + last if world.talker.resumes else last

    assert joined(told) == world.output_of(run)
    assert [read["fault"] for read in world.streams] == [trouble.value] * times + [None]


def listen_on(world: World, run: str, told: list[OutputDelta]) -> list[OutputDelta]:
    """What is known after a stream that broke: more, where it went on."""
    heard = list(told) if world.talker.resumes else []
    with pytest.raises(Transient):
        heard.extend(world.adapter.follow_output(run, after=told[-1].place if told else None))
    return heard


def test_who_stops_listening_does_not_stop_the_run(world: World) -> None:
    run = world.begin()
    told = world.adapter.follow_output(run)
    next(told)
    told.close()

    assert world.output_of(run)


def test_a_run_that_fails_ends_its_stream(world: World) -> None:
    run = world.begin(lasts=0.2, fail="out of ink")

    list(world.adapter.follow_output(run))

    assert world.adapter.status(run).state is JobState.FAILED


def test_a_run_that_is_canceled_ends_its_stream(world: World) -> None:
    run = world.begin(lasts=3600)
    told = world.adapter.follow_output(run)
    world.adapter.cancel(run)

    assert list(told) == []


def test_an_input_that_asks_for_no_stream_is_not_listened_to(world: World) -> None:
    assert not world.adapter.can_follow(world.talker.mute)
    assert not world.adapter.can_follow({})


def test_there_is_nothing_to_hear_of_an_unknown_run(world: World) -> None:
    prefix = "resp_" if world.talker.adapter == "openai" else ""
    with pytest.raises(Gone):
        list(world.adapter.follow_output(f"{prefix}nobody"))


def test_a_submit_whose_answer_is_lost_is_of_unknown_outcome(build: Callable[..., World]) -> None:
    with pytest.raises(UnknownOutcome):
        build(submit=Fault.LOST_ANSWER).begin()


def test_a_submit_that_is_turned_away_for_now_was_not_accepted(build: Callable[..., World]) -> None:
    with pytest.raises(Transient):
        build(submit=Fault.SUBMIT_429).begin()


# What each does its own way ----------------------------------------------------------------------------------


def test_openai_submits_in_the_background_and_leaves_the_stream() -> None:
    talker = TALKERS[3]
    with running(SimulatorConfig(api_token=TOKEN)) as simulator, closing(HttpClient()) as client:
        world = World(talker, simulator, an_adapter(talker, simulator.url, client))
        run = world.begin(lasts=3600)
        (order,) = [run.order for run in simulator.provider.runs.list_runs()]

        assert run.startswith("resp_")
        assert (order.asked["background"], order.asked["store"], order.asked["stream"]) == (True, True, True)
        assert world.streams == []  # the answer to the submit was not listened to


def test_openai_says_gone_where_a_response_was_not_created_with_a_stream() -> None:
    talker = TALKERS[3]
    with running(SimulatorConfig(api_token=TOKEN)) as simulator, closing(HttpClient()) as client:
        adapter: Any = an_adapter(talker, simulator.url, client)
        inputs: dict[str, Json] = {"model": "gpt", "input": "x"}
        run = adapter.submit(SubmitRequest(inputs, "key-1", "attempt-1", "http://127.0.0.1:9/")).provider_job_id

        with pytest.raises(Gone, match="stream=true"):
            list(adapter.follow_output(run))


def test_replicate_refuses_a_stream_of_a_model_that_has_none() -> None:
    talker = TALKERS[2]
    with running(SimulatorConfig(api_token=TOKEN)) as simulator, closing(HttpClient()) as client:
        adapter = an_adapter(talker, simulator.url, client)
        inputs: dict[str, Json] = {"model": "homing/video", "stream": True, "input": {}}

        with pytest.raises(Refused):
            adapter.submit(SubmitRequest(inputs, "key-1", "attempt-1", "http://127.0.0.1:9/"))
