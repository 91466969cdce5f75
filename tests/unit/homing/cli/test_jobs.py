"""Commands about one job, or a page of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fakes.api import FakeApi, Stream, a_job
from tests.unit.homing.cli.conftest import Run

DONE = a_job(state="succeeded", version=3, finished_at="2026-01-01T00:01:00.000000Z")


def test_submit_sends_what_it_was_given(run: Run, api: FakeApi) -> None:
    api.on("POST /v1/jobs", a_job(), 202)

    ended = run(
        "submit", "sim", "--input", '{"model": "video"}', "--key", "k1", "--expected", "90s", "--deadline", "2h",
        "--metadata", "team=a", "--metadata", "n=1", "--json",
    )  # fmt: skip

    assert ended.code == 0
    assert ended.document["id"] == "job_1"
    (asked,) = api.asked
    assert asked.body == {
        "provider": "sim",
        "input": {"model": "video"},
        "expected": "90s",
        "deadline": "2h",
        "metadata": {"team": "a", "n": "1"},
    }
    assert asked.headers["Idempotency-Key"] == "k1"
    assert asked.headers["Authorization"] == "Bearer hk_test"


def test_submit_reads_its_input_from_a_file(run: Run, api: FakeApi, tmp_path: Path) -> None:
    api.on("POST /v1/jobs", a_job(), 202)
    (tmp_path / "in.json").write_text('{"prompt": "ü"}', encoding="utf-8")

    run("submit", "sim", "--input", "@in.json")

    assert api.asked[0].body["input"] == {"prompt": "ü"}


def test_submit_without_a_key_makes_one_and_keeps_it_over_a_lost_answer(run: Run, api: FakeApi) -> None:
    api.on("POST /v1/jobs", {"title": "away"}, 503)
    api.on("POST /v1/jobs", a_job(), 202)

    assert run("submit", "sim").code == 0

    first, second = api.asked
    assert first.headers["Idempotency-Key"] == second.headers["Idempotency-Key"] != ""


@pytest.mark.parametrize(("state", "code"), [("succeeded", 0), ("failed", 1), ("canceled", 1)])
def test_submit_wait_follows_the_job_to_its_end(run: Run, api: FakeApi, state: str, code: int) -> None:
    end = a_job(state=state, version=3, finished_at="2026-01-01T00:01:00.000000Z")
    api.on("POST /v1/jobs", a_job(), 202)
    api.on("GET /v1/jobs/job_1", a_job(state="running", version=2, progress={"fraction": 0.4}))
    api.on("GET /v1/jobs/job_1", end)

    ended = run("submit", "sim", "--wait", "--json")

    assert ended.code == code
    assert ended.document["state"] == state
    waited = api.asked[-1].query
    assert (waited["since"], int(waited["wait"]) > 0) == ("2", True)


def test_wait_shows_progress_where_a_person_reads(run: Run, api: FakeApi) -> None:
    api.on("POST /v1/jobs", a_job(), 202)
    api.on("GET /v1/jobs/job_1", a_job(state="running", version=2, progress={"fraction": 0.4, "message": "half"}))
    api.on("GET /v1/jobs/job_1", DONE)

    ended = run("submit", "sim", "--wait")

    assert "job_1 running 40% half" in ended.err
    assert "job_1 succeeded" in ended.err
    assert "succeeded" in ended.out


def test_watch_prints_each_change_as_a_line(run: Run, api: FakeApi) -> None:
    api.on("GET /v1/jobs/job_1", a_job())
    api.on("GET /v1/jobs/job_1", a_job(state="running", version=2))
    api.on("GET /v1/jobs/job_1", DONE)

    ended = run("watch", "job_1", "--json")

    assert [json.loads(line)["version"] for line in ended.out.splitlines()] == [1, 2, 3]
    assert ended.code == 0


def test_watch_says_nothing_twice_where_a_person_reads(run: Run, api: FakeApi) -> None:
    api.on("GET /v1/jobs/job_1", a_job(state="running"))
    api.on("GET /v1/jobs/job_1", a_job(state="running", version=2))
    api.on("GET /v1/jobs/job_1", DONE)

    assert run("watch", "job_1").err.splitlines() == ["job_1 running", "job_1 succeeded"]


def test_watch_prints_output_as_it_comes(run: Run, api: FakeApi) -> None:
    api.on("GET /v1/jobs/job_1", a_job(state="running", version=2))
    api.on("GET /v1/jobs/job_1", DONE)
    pieces = [_piece("delta", text="The ol", offset=0), _piece("reset"), _piece("delta", text="The new", offset=0)]
    end = f"event: job.succeeded\ndata: {json.dumps({'data': {'job': DONE}})}\n\n"
    api.on("GET /v1/jobs/job_1/events", Stream("".join([*pieces, end])))

    ended = run("watch", "job_1")

    assert ended.out.startswith("The ol\nThe new\nid ")
    assert "the output begins anew" in ended.err


def _piece(kind: str, **facts: object) -> str:
    data = {"data": {"job": {"id": "job_1"}, "attempt": 1, **facts}}
    return f"id: {kind}\nevent: job.output.{kind}\ndata: {json.dumps(data)}\n\n"


def test_watch_outlives_a_fleet_that_restarts(run: Run, api: FakeApi) -> None:
    api.on("GET /v1/jobs/job_1", a_job())
    api.on("GET /v1/jobs/job_1", {"title": "away"}, 503)
    api.on("GET /v1/jobs/job_1", DONE)

    assert run("watch", "job_1").code == 0


def test_watch_gives_up_when_its_time_is_over(run: Run, api: FakeApi) -> None:
    api.on("GET /v1/jobs/job_1", a_job())

    assert run("watch", "job_1", "--timeout", "1ms").code == 1


def test_watch_says_when_a_person_is_needed(run: Run, api: FakeApi) -> None:
    api.on(
        "GET /v1/jobs/job_1",
        a_job(review={"reason": "ambiguous_submit", "since": "2026-01-01T00:00:00Z", "detail": None}),
    )
    api.on("GET /v1/jobs/job_1", DONE)

    assert "homing resolve job_1" in run("watch", "job_1").err


def test_list_passes_its_filters_and_says_how_to_go_on(run: Run, api: FakeApi) -> None:
    running = a_job(state="running", progress={"fraction": 0.25})
    api.on("GET /v1/jobs", {"data": [running], "next_cursor": "c2"})

    ended = run("list", "--state", "running", "--review", "true", "--metadata", "team=a", "--limit", "5")

    assert api.asked[0].query == {"state": "running", "review": "true", "metadata.team": "a", "limit": "5"}
    assert "job_1" in ended.out
    assert "25%" in ended.out
    assert "--cursor c2" in ended.err


def test_get_shows_the_history_when_asked(run: Run, api: FakeApi) -> None:
    step = {"from": "pending", "to": "running", "source": "webhook", "at": "…", "applied": True, "reason": None}
    api.on("GET /v1/jobs/job_1/transitions", {"data": [step], "next_cursor": "2"})
    api.on("GET /v1/jobs/job_1/transitions", {"data": [step], "next_cursor": None})

    ended = run("get", "job_1", "--history", "--json")

    assert len(ended.document["data"]) == 2
    assert api.asked[1].query["cursor"] == "2"


def test_cancel_and_resolve_post_what_a_person_decided(run: Run, api: FakeApi) -> None:
    api.on("POST /v1/jobs/job_1/cancel", a_job(), 202)
    api.on("POST /v1/jobs/job_1/resolve", DONE)

    assert run("cancel", "job_1").code == 0
    ended = run("resolve", "job_1", "settle", "--state", "succeeded", "--reason", "seen", "--provider-job-id", "p-1")

    assert ended.code == 0
    expected = {"action": "settle", "state": "succeeded", "reason": "seen", "provider_job_id": "p-1"}
    assert api.asked[1].body == expected


def test_an_id_cannot_leave_its_place_in_the_path(run: Run, api: FakeApi) -> None:
    run("get", "../dead-letters")

    assert api.asked[0].path == "/v1/jobs/..%2Fdead-letters"
