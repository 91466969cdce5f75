"""A run's output while it is made, and the trouble a listener may have."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import requests
from werkzeug.test import TestResponse

from homing.simulator import SimulatorConfig, running
from homing.simulator.faults import Fault, Faults
from tests.unit.homing.simulator.stage import QUICK, Stage, planned

Build = Callable[..., Stage]
SPOKEN: dict[str, Any] = {**QUICK, "prompt": "Tauben fliegen über Köln 🕊", "max_tokens": 12}


def events_in(text: str) -> list[dict[str, Any]]:
    """Each event as its fields, its data read."""
    found = []
    for block in text.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        found.append({**fields, "data": json.loads(fields["data"])})
    return found


def joined(events: list[dict[str, Any]]) -> str:
    return "".join(event["data"]["text"] for event in events if event["event"] == "output")


def listen(stage: Stage, run_id: str, query: str = "", **headers: str) -> TestResponse:
    return stage.client.get(f"/jobs/{run_id}/stream{query}", headers=headers)


@contextmanager
def heard(stage: Stage, run_id: str, **headers: str) -> Iterator[Iterator[str]]:
    """The stream of a run that is still at work, event by event."""
    answer = stage.client.get(f"/jobs/{run_id}/stream", headers=headers, buffered=False)
    try:
        yield (chunk.decode() for chunk in answer.response)
    finally:
        answer.close()


def test_the_pieces_joined_are_the_output(stage: Stage) -> None:
    run = stage.run_to_end(SPOKEN)

    answer = listen(stage, run["id"])

    events = events_in(answer.text)
    assert (answer.status_code, answer.mimetype) == (200, "text/event-stream")
    assert joined(events) == run["output"]["text"]
    assert [event["event"] for event in events] == ["output"] * 12 + ["done"]
    assert [event["id"] for event in events] == [str(number) for number in range(1, 14)]
    assert events[-1]["data"] == {"status": "succeeded"}


def test_the_pieces_come_over_the_time_that_the_run_takes(stage: Stage) -> None:
    run_id = stage.submit({**SPOKEN, "duration_s": 12}).json["id"]
    stage.pass_time(0.1)
    stage.pass_time(3.5)

    with heard(stage, run_id) as told:
        first = [next(told) for _ in range(3)]
        stage.pass_time(1)
        fourth = next(told)

    assert [events_in(text)[0]["id"] for text in (*first, fourth)] == ["1", "2", "3", "4"]


def test_a_long_silence_is_filled_with_comments(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = stage.submit({**SPOKEN, "duration_s": 1200}).json["id"]
    monkeypatch.setattr(stage.provider.closing, "wait", lambda delay_s: stage.clock.advance(delay_s) and False)
    stage.pass_time(0.2)

    with heard(stage, run_id) as told:
        assert next(told).startswith(":")


@pytest.mark.parametrize("place", [{"query": "?after=9"}, {"Last-Event-ID": "9"}], ids=["query", "header"])
def test_a_listener_goes_on_where_it_left_off(stage: Stage, place: dict[str, str]) -> None:
    run_id = stage.run_to_end(SPOKEN)["id"]

    events = events_in(listen(stage, run_id, **place).text)

    assert [event["id"] for event in events] == ["10", "11", "12", "13"]


@pytest.mark.parametrize("place", ["12", "13", "999"])
def test_who_knows_it_all_is_told_the_end(stage: Stage, place: str) -> None:
    run_id = stage.run_to_end(SPOKEN)["id"]

    events = events_in(listen(stage, run_id, f"?after={place}").text)

    assert [event["event"] for event in events] == ["done"]


@pytest.mark.parametrize("place", ["-1", "x", "1.5", "٣", "9" * 40])
def test_a_place_that_makes_no_sense_is_refused(stage: Stage, place: str) -> None:
    run_id = stage.run_to_end(SPOKEN)["id"]

    assert listen(stage, run_id, f"?after={place}").status_code == 400


def test_without_resuming_it_always_begins_at_the_beginning(build_stage: Build) -> None:
    stage = build_stage(stream_resume=False)
    run = stage.run_to_end(SPOKEN)

    events = events_in(listen(stage, run["id"], **{"Last-Event-ID": "9"}).text)

    assert joined(events) == run["output"]["text"]
    assert not any("id" in event for event in events)


def test_a_failed_run_says_why(stage: Stage) -> None:
    run_id = stage.run_to_end({**SPOKEN, "fail": "out of ink"})["id"]

    events = events_in(listen(stage, run_id).text)

    assert [(event["event"], event["data"]) for event in events] == [
        ("error", {"code": "generation_failed", "message": "out of ink"}),
        ("done", {"status": "failed"}),
    ]


def test_a_canceled_run_says_no_more(stage: Stage) -> None:
    run_id = stage.submit({**SPOKEN, "duration_s": 12}).json["id"]
    stage.pass_time(0.1)
    stage.pass_time(2.5)

    with heard(stage, run_id) as told:
        before = [next(told), next(told)]
        stage.client.post(f"/jobs/{run_id}/cancel")
        after = events_in("".join(told))

    assert joined(events_in("".join(before)))
    assert [event["data"] for event in after] == [{"status": "canceled"}]


@pytest.mark.parametrize(
    "model", [{"model": "video", "prompt": "home", "duration_s": 1}, {"model": "clean", "rows": []}]
)
def test_other_models_have_no_stream(stage: Stage, model: dict[str, Any]) -> None:
    assert listen(stage, stage.submit(model).json["id"]).status_code == 404


def test_an_unknown_run_has_no_stream(stage: Stage) -> None:
    answer = listen(stage, "p-nobody")

    assert (answer.status_code, answer.json["error"]["code"]) == (404, "not_found")
    assert stage.ledger["reads"][0] | {"at": None} == {
        "id": "p-nobody", "kind": "stream", "after": 0, "answer": 404, "fault": None, "at": None,
    }  # fmt: skip


def test_the_ledger_counts_who_listened(stage: Stage) -> None:
    run_id = stage.run_to_end(SPOKEN)["id"]
    listen(stage, run_id)
    listen(stage, run_id, "?after=3")

    books = stage.ledger

    assert books["totals"]["streams"] == 2
    assert [read["after"] for read in books["reads"] if read["kind"] == "stream"] == [0, 3]


@pytest.mark.parametrize("times", [1, 2])
def test_a_stream_may_be_cut_in_the_middle(build_stage: Build, times: int) -> None:
    stage = build_stage(fault_plan=planned(Faults(stream=Fault.STREAM_CUT, times=times), SPOKEN))
    run = stage.run_to_end(SPOKEN)
    told = []

    for _ in range(times):
        with heard(stage, run["id"]) as chunks, pytest.raises(ConnectionAbortedError):
            told.append("".join(iter(chunks.__next__, None)))
    whole = listen(stage, run["id"])

    assert joined(events_in(whole.text)) == run["output"]["text"]
    assert [read["fault"] for read in stage.ledger["reads"] if read["kind"] == "stream"] == ["stream_cut"] * times + [
        None
    ]


def test_a_listener_with_the_rest_to_hear_is_cut_in_the_rest() -> None:
    plan = planned(Faults(stream=Fault.STREAM_CUT, times=3, jitter=0.0), SPOKEN)
    with running(SimulatorConfig(time_scale=0.05), plan=plan) as simulator, requests.Session() as session:
        given = {name: value for name, value in SPOKEN.items() if name != "model"}
        run_id = session.post(f"{simulator.url}/jobs", json={"model": "llm-stream", "input": given}).json()["id"]
        told = [hear(session, f"{simulator.url}/jobs/{run_id}/stream?after={after}") for after in (0, 1, 2, 3)]

    assert [[event["event"] for event in events] for events in told] == [
        ["output"], ["output"], ["output"], ["output"] * 9 + ["done"],
    ]  # fmt: skip


def test_a_stream_may_fall_silent_before_it_is_cut() -> None:
    plan = planned(Faults(stream=Fault.STREAM_SILENT), SPOKEN)
    with running(SimulatorConfig(time_scale=0.02), plan=plan) as simulator, requests.Session() as session:
        given = {name: value for name, value in SPOKEN.items() if name != "model"}
        run_id = session.post(f"{simulator.url}/jobs", json={"model": "llm-stream", "input": given}).json()["id"]
        before = hear(session, f"{simulator.url}/jobs/{run_id}/stream")
        whole = hear(session, f"{simulator.url}/jobs/{run_id}/stream")

    assert 1 <= len(before) < 12
    assert whole[: len(before)] == before
    assert whole[-1]["event"] == "done"


def hear(session: requests.Session, url: str) -> list[dict[str, Any]]:
    """What a stream told until it ended or broke."""
    text = b""
    with session.get(url, stream=True) as answer:
        try:
            for chunk in answer.iter_content(None):
                text += chunk
        except requests.exceptions.ChunkedEncodingError:
            pass
    return events_in(text.decode())
