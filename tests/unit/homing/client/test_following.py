"""Waiting for a job: whichever way is available, the same end."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homing.client import Homing, Job, OutputPiece, Problem, Unreachable, WaitTimeout
from tests.fakes.api import FakeApi, Stream, a_job, serving_api

RUNNING = a_job(state="running", version=2, progress={"fraction": 0.4, "message": "half"})
DONE = a_job(state="succeeded", version=4, output={"frames": 24}, finished_at="2026-01-01T00:01:00Z")
JOB, EVENTS = "GET /v1/jobs/job_1", "GET /v1/jobs/job_1/events"


def told(job: dict[str, Any], *, kind: str = "job.started", place: str = "") -> str:
    """A message of a stream: an event's envelope, its job without its input."""
    data = {"id": "evt_1", "type": kind, "data": {"job": {**job, "input": None}}}
    return f"id: {place or job['version']}\nevent: {kind}\ndata: {json.dumps(data)}\n\n"


def snapshot(job: dict[str, Any]) -> str:
    return f"event: snapshot\ndata: {json.dumps({'job': job})}\n\n"


def versions(jobs: list[Job]) -> list[int]:
    return [job.version for job in jobs]


def test_a_stream_is_preferred_and_brings_every_change(fleet: Homing, api: FakeApi) -> None:
    api.on(JOB, a_job())
    api.on(JOB, DONE)
    api.on(EVENTS, Stream(snapshot(a_job()) + told(RUNNING) + told(DONE, kind="job.succeeded")))
    seen: list[Job] = []

    job = fleet.wait("job_1", on_change=seen.append)

    assert job.document == DONE
    assert versions(seen) == [1, 2, 4]
    assert seen[1].progress is not None
    assert [asked.path for asked in api.asked].count("/v1/jobs/job_1") == 2


def test_a_stream_that_breaks_is_resumed_where_it_broke(fleet: Homing, api: FakeApi) -> None:
    api.on(JOB, a_job())
    api.on(JOB, RUNNING)
    api.on(JOB, DONE)
    api.on(EVENTS, Stream(snapshot(a_job()) + told(RUNNING, place="o-2")))
    api.on(EVENTS, Stream(told(DONE, kind="job.succeeded")))

    assert fleet.wait("job_1").document == DONE

    resumed = [asked for asked in api.asked if asked.path.endswith("/events")][1]
    assert resumed.headers["Last-Event-ID"] == "o-2"


def test_a_stream_of_a_job_that_has_ended_meanwhile_is_204_and_the_job_is_read(fleet: Homing, api: FakeApi) -> None:
    api.on(JOB, a_job())
    api.on(JOB, DONE)
    api.on(EVENTS, "", 204)

    assert fleet.wait("job_1").document == DONE


@pytest.mark.parametrize("status", [404, 405, 406, 429, 501, 502, 503])
def test_without_a_stream_a_long_poll_brings_the_change(fleet: Homing, api: FakeApi, status: int) -> None:
    api.on(EVENTS, {"title": "no"}, status)
    api.on(JOB, a_job())
    api.on(JOB, DONE)

    assert fleet.wait("job_1").document == DONE

    assert api.asked[-1].query == {"wait": "30", "since": "1"}


def test_a_page_that_is_no_stream_is_taken_for_none(fleet: Homing, api: FakeApi) -> None:
    api.on(EVENTS, {"hello": "from a proxy"})
    api.on(JOB, a_job())
    api.on(JOB, DONE)

    assert fleet.wait("job_1").document == DONE


def test_a_stream_that_never_says_anything_new_is_left(fleet: Homing, api: FakeApi) -> None:
    api.on(EVENTS, Stream(snapshot(a_job())))
    api.on(JOB, a_job())
    api.on(JOB, a_job())
    api.on(JOB, a_job())
    api.on(JOB, DONE)

    assert fleet.wait("job_1").document == DONE


def test_where_long_polls_are_cut_off_plain_polls_do_it(fleet: Homing, api: FakeApi) -> None:
    class CutsLongPolls:
        """A proxy that lets nothing wait."""

        polls = 0

        def answer(self, asked: Any) -> tuple[int, Any]:
            api.asked.append(asked)
            if asked.path.endswith("/events") or "wait" in asked.query:
                return 504, "gateway time-out"
            self.polls += 1
            return 200, DONE if self.polls > 5 else a_job()

    api.answer = CutsLongPolls().answer  # type: ignore[method-assign] # the fake behind a proxy

    assert fleet.wait("job_1").document == DONE


def test_a_job_that_is_not_there_is_said_so(fleet: Homing, api: FakeApi) -> None:
    with pytest.raises(Problem, match="no such thing"):
        fleet.wait("job_1")


def test_a_fleet_that_stays_away_is_given_up_after_a_minute(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homing.client.following._PATIENCE_S", 0.05)
    api.on(JOB, a_job())
    with Homing(api.url, "hk_test") as fleet:
        changes = fleet.changes("job_1")
        next(changes)
        api.answers[JOB] = [(503, {"title": "away"})]

        with pytest.raises(Exception, match="away") as caught:
            list(changes)

    assert not isinstance(caught.value, Unreachable)


def test_when_the_time_is_over_the_job_seen_last_comes_along(fleet: Homing, api: FakeApi) -> None:
    api.on(JOB, RUNNING)

    with pytest.raises(WaitTimeout, match="job_1 is still running") as caught:
        fleet.wait("job_1", timeout=timedelta(milliseconds=20))

    assert caught.value.job.document == RUNNING
    assert isinstance(caught.value, TimeoutError)


def test_a_job_that_had_ended_costs_one_request(fleet: Homing, api: FakeApi) -> None:
    api.on(JOB, DONE)

    fleet.wait("job_1")

    assert len(api.asked) == 1


Way = Callable[[FakeApi, list[dict[str, Any]]], None]


def by_stream(api: FakeApi, life: list[dict[str, Any]]) -> None:
    ending = {"succeeded": "job.succeeded", "failed": "job.failed", "canceled": "job.canceled"}
    text = snapshot(life[0]) + "".join(told(job, kind=ending.get(job["state"], "job.progress")) for job in life[1:])
    api.on(JOB, life[0])
    api.on(JOB, life[-1])
    api.on(EVENTS, Stream(text))


def by_broken_streams(api: FakeApi, life: list[dict[str, Any]]) -> None:
    for job in life:
        api.on(JOB, job)
        api.on(EVENTS, Stream(snapshot(job)[:-9]))


def by_long_poll(api: FakeApi, life: list[dict[str, Any]]) -> None:
    for job in life:
        api.on(JOB, job)


def by_polls_that_see_nothing_new(api: FakeApi, life: list[dict[str, Any]]) -> None:
    for job in life:
        for _ in range(3):
            api.on(JOB, job)


@st.composite
def lives(draw: st.DrawFn) -> list[dict[str, Any]]:
    """The versions of a job, from one that is open to its end."""
    counts = draw(st.lists(st.floats(0, 1), max_size=4))
    open_ones = [a_job(state="running", version=n + 2, progress={"fraction": f}) for n, f in enumerate(counts)]
    end = draw(st.sampled_from(["succeeded", "failed", "canceled"]))
    error = {"code": "x", "message": "y"} if end == "failed" else None
    return [a_job(), *open_ones, a_job(state=end, version=len(counts) + 2, error=error, input={"n": 1})]


@settings(max_examples=15)
@given(lives())
def test_whichever_way_is_available_the_end_is_the_same(life: list[dict[str, Any]]) -> None:
    ways: list[Way] = [by_stream, by_broken_streams, by_long_poll, by_polls_that_see_nothing_new]
    for way in ways:
        with serving_api() as api, Homing(api.url, "hk_test") as fleet:
            way(api, life)
            seen: list[Job] = []

            job = fleet.wait("job_1", on_change=seen.append)

            assert job.document == life[-1]
            assert versions(seen) == sorted(set(versions(seen)))
            assert (seen[0].version, seen[-1]) == (1, job)


def piece(text: str, offset: int) -> str:
    """A message with a piece of output."""
    data = {"id": f"evt_o{offset}", "data": {"job": {"id": "job_1"}, "attempt": 1, "offset": offset, "text": text}}
    return f"id: o-{offset}\nevent: job.output.delta\ndata: {json.dumps(data)}\n\n"


RESET = f"id: r\nevent: job.output.reset\ndata: {json.dumps({'data': {'job': {'id': 'job_1'}, 'attempt': 1}})}\n\n"


def test_output_is_told_as_it_comes_and_once_over_a_broken_stream(fleet: Homing, api: FakeApi) -> None:
    api.on(JOB, a_job())
    api.on(JOB, RUNNING)
    api.on(JOB, DONE)
    api.on(EVENTS, Stream(snapshot(a_job()) + piece("The ", 0)))
    api.on(EVENTS, Stream(piece("end.", 4) + told(DONE, kind="job.succeeded")))
    heard: list[OutputPiece] = []

    fleet.wait("job_1", on_output=heard.append)

    assert heard == [OutputPiece("The ", 0), OutputPiece("end.", 4)]


@pytest.mark.parametrize("anew", [RESET, snapshot(a_job())])
def test_output_that_begins_anew_is_said_to(fleet: Homing, api: FakeApi, anew: str) -> None:
    api.on(JOB, a_job())
    api.on(JOB, DONE)
    story = [snapshot(a_job()), piece("The ol", 0), anew, piece("The new", 0), told(DONE, kind="job.succeeded")]
    api.on(EVENTS, Stream("".join(story)))
    heard: list[OutputPiece] = []

    fleet.wait("job_1", on_output=heard.append)

    assert heard == [OutputPiece("The ol"), OutputPiece("", begins_anew=True), OutputPiece("The new")]


def test_the_output_of_a_job_that_has_just_ended_is_told_before_its_end(fleet: Homing, api: FakeApi) -> None:
    api.on(JOB, a_job())
    api.on(JOB, DONE)
    api.on(EVENTS, Stream(snapshot(DONE) + piece("all", 0) + told(DONE, kind="job.succeeded")))
    heard: list[OutputPiece] = []

    assert fleet.wait("job_1", on_output=heard.append).document == DONE

    assert heard == [OutputPiece("all")]
