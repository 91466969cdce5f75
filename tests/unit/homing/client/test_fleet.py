"""What the client sends, and what it makes of the answers."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from homing.client import Busy, Homing, Job, JobState, Problem, Unreachable
from tests.fakes.api import FakeApi, Stream, a_job

REFUSED = {
    "type": "urn:homing:problem:invalid",
    "title": "The request cannot be used",
    "status": 422,
    "detail": "1 field is wrong",
    "errors": [{"field": "input.prompt", "message": "is missing"}],
}
AWAY = {"title": "away"}


def test_a_job_is_sent_with_what_is_known_of_it(fleet: Homing, api: FakeApi) -> None:
    api.on("POST /v1/jobs", a_job(), 202)

    job = fleet.submit(
        "sim", {"model": "video"}, key="k1", expected=timedelta(seconds=90), deadline="2h", metadata={"team": "a"}
    )

    assert (job.id, job.state, job.created_at) == ("job_1", JobState.PENDING, datetime(2026, 1, 1, tzinfo=UTC))
    (asked,) = api.asked
    assert asked.headers["Idempotency-Key"] == "k1"
    assert asked.headers["Authorization"] == "Bearer hk_test"
    assert asked.body == {
        "provider": "sim",
        "input": {"model": "video"},
        "expected": "1m 30s",
        "deadline": "2h",
        "metadata": {"team": "a"},
    }


def test_a_lost_answer_to_a_submit_is_asked_for_with_the_same_key(fleet: Homing, api: FakeApi) -> None:
    api.on("POST /v1/jobs", AWAY, 503)
    api.on("POST /v1/jobs", AWAY, 502)
    api.on("POST /v1/jobs", a_job(), 202)

    fleet.submit("sim")

    keys = {asked.headers["Idempotency-Key"] for asked in api.asked}
    assert len(api.asked) == 3
    assert len(keys) == 1


def test_two_submits_without_a_key_are_two_jobs(fleet: Homing, api: FakeApi) -> None:
    api.on("POST /v1/jobs", a_job(), 202)

    fleet.submit("sim")
    fleet.submit("sim")

    assert len({asked.headers["Idempotency-Key"] for asked in api.asked}) == 2


def test_a_read_that_fails_is_tried_again_and_then_given_up(fleet: Homing, api: FakeApi) -> None:
    api.on("GET /v1/jobs/job_1", AWAY, 503)

    with pytest.raises(Busy, match="away"):
        fleet.get("job_1")

    assert len(api.asked) == 4


def test_a_change_without_a_key_is_sent_once(fleet: Homing, api: FakeApi) -> None:
    api.on("POST /v1/jobs/job_1/cancel", AWAY, 503)

    with pytest.raises(Busy):
        fleet.cancel("job_1")

    assert len(api.asked) == 1


def test_a_refusal_is_raised_with_the_apis_own_words_and_not_repeated(fleet: Homing, api: FakeApi) -> None:
    api.on("POST /v1/jobs", REFUSED, 422)

    with pytest.raises(Problem) as caught:
        fleet.submit("sim")

    problem = caught.value
    assert (problem.slug, problem.title) == ("invalid", REFUSED["title"])
    assert (problem.detail, problem.http_status) == (REFUSED["detail"], 422)
    assert [(fault.field, fault.message) for fault in problem.fields] == [("input.prompt", "is missing")]
    assert len(api.asked) == 1


def test_what_the_api_asks_to_wait_for_comes_along(fleet: Homing, api: FakeApi) -> None:
    api.headers["Retry-After"] = "7"
    api.on("GET /v1/jobs/job_1", AWAY, 429)

    with pytest.raises(Busy) as caught:
        fleet.get("job_1")

    assert caught.value.retry_after == timedelta(seconds=7)


def test_a_fleet_that_is_not_there_is_said_to_be(fleet: Homing) -> None:
    with Homing("http://127.0.0.1:9", "hk_test") as nobody, pytest.raises(Unreachable, match=r"127\.0\.0\.1:9"):
        nobody.get("job_1")


def test_a_list_is_read_page_by_page(fleet: Homing, api: FakeApi) -> None:
    api.on("GET /v1/jobs", {"data": [a_job(id="job_2")], "next_cursor": "c"})
    api.on("GET /v1/jobs", {"data": [a_job()], "next_cursor": None})

    jobs = list(fleet.list(state="running", review=True, created_after=datetime(2026, 1, 1, tzinfo=UTC)))

    assert [job.id for job in jobs] == ["job_2", "job_1"]
    first, second = (asked.query for asked in api.asked)
    assert (first["state"], first["review"]) == ("running", "true")
    assert first["created_after"] == "2026-01-01T00:00:00.000000Z"
    assert second["cursor"] == "c"


def test_a_review_is_ended_as_a_person_decided(fleet: Homing, api: FakeApi) -> None:
    api.on("POST /v1/jobs/job_1/resolve", a_job(state="succeeded", version=2))

    job = fleet.resolve("job_1", "settle", reason="seen", state=JobState.SUCCEEDED)

    assert job.is_success
    assert api.asked[0].body == {"action": "settle", "reason": "seen", "state": "succeeded"}


def test_events_are_read_in_order(fleet: Homing, api: FakeApi) -> None:
    event = {
        "id": "evt_1", "type": "job.created", "schema_version": 1, "sequence": 1, "position": 8,
        "occurred_at": "2026-01-01T00:00:00Z", "tenant": "acme", "data": {"job": a_job()}, "newer": True,
    }  # fmt: skip
    api.on("GET /v1/events", {"data": [event], "next_cursor": None})

    (read,) = fleet.events(job="job_1", after=7)

    assert (read.id, read.position) == ("evt_1", 8)
    assert api.asked[0].query == {"job": "job_1", "after": "7", "limit": "200"}


def test_a_stream_is_told_message_by_message_and_resumed_where_asked(fleet: Homing, api: FakeApi) -> None:
    text = (
        'event: snapshot\ndata: {"job": {"id": "job_1", "provider": "sim", "state": "running", "version": 2}}\n\n'
        ': beat\n\nid: o-1\nevent: job.output.delta\ndata: {"text": "Hel"}\n\n'
    )
    api.on("GET /v1/jobs/job_1/events", Stream(text))

    snapshot, delta = fleet.stream("job_1", last_event_id="o-0")

    assert snapshot.job == Job("job_1", "sim", JobState.RUNNING, 2)
    assert (delta.type, delta.id, delta.data, delta.job) == ("job.output.delta", "o-1", {"text": "Hel"}, None)
    assert api.asked[0].headers["Last-Event-ID"] == "o-0"


def test_what_a_newer_fleet_adds_breaks_nothing(fleet: Homing, api: FakeApi) -> None:
    api.on("GET /v1/jobs/job_1", a_job(weather="fog", progress={"fraction": 0.5, "message": None, "eta": 3}))

    job = fleet.get("job_1")

    assert job.document["weather"] == "fog"
    assert job.progress is not None
    assert job.progress.fraction == 0.5


@pytest.mark.parametrize("name", ["homing.client", "homing.client.fleet", "homing.client.verification"])
def test_importing_the_client_loads_nothing_of_a_fleet(name: str) -> None:
    heavy = [
        "celery",
        "sqlalchemy",
        "flask",
        "apiflask",
        "pydantic",
        "redis",
        "cryptography",
        "typer",
        "rich",
        "fsspec",
    ]
    code = f"import sys, {name}; print([name for name in {heavy} if name in sys.modules])"

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ran.stdout.strip() == "[]"


def test_every_public_name_is_there() -> None:
    import homing.client

    assert all(getattr(homing.client, name) is not None for name in homing.client.__all__)
    with pytest.raises(AttributeError, match="Nothing"):
        _ = homing.client.Nothing
