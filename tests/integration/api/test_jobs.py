from __future__ import annotations

import io
import json
from typing import Any

import pytest
from werkzeug.test import TestResponse

from jobs.broker import SUBMIT
from jobs.clock import FakeClock
from jobs.core.errors import TooLarge
from jobs.core.states import JobState
from jobs.services.runtime import Runtime
from jobs.storage.database import Database
from jobs.storage.jobs import get_job
from tests.factories import new_job, seen
from tests.fakes.broker import RecordingBroker
from tests.integration.api.conftest import TENANT, Api, a_body


def observe(runtime: Runtime, job_id: str, state: JobState, **facts: Any) -> None:
    with runtime.database.write() as tx:
        runtime.observer.observe(tx, job_id, seen(state, **facts))


def test_a_submitted_job_is_durable_and_announced_before_it_is_accepted(
    api: Api, broker: RecordingBroker, database: Database
) -> None:
    answer = api.submit()

    assert answer.status_code == 202
    job = answer.json
    assert answer.headers["Location"] == f"/v1/jobs/{job['id']}"
    assert broker.take(SUBMIT) == [(job["id"],)]
    with database.read() as tx:
        row = get_job(tx, job["id"], tenant=TENANT)
    assert (row["state"], row["attempt"], row["next_submit_at"]) == ("pending", 1, row["created_at"])


def test_a_new_job_looks_as_the_contract_says(api: Api) -> None:
    job = api.submit(a_body(metadata={"order": "7"}, expected="90s", deadline="2h")).json

    assert job.pop("id").startswith("job_")
    assert job == {
        "provider": "renders",
        "provider_job_id": None,
        "state": "pending",
        "version": 1,
        "progress": None,
        "input": {"model": "video", "prompt": "a lighthouse in fog"},
        "output": None,
        "error": None,
        "metadata": {"order": "7"},
        "review": None,
        "late_outcome": None,
        "cancel_requested_at": None,
        "expected_at": "2026-01-01T00:01:30.000000Z",
        "deadline_at": "2026-01-01T02:00:00.000000Z",
        "created_at": "2026-01-01T00:00:00.000000Z",
        "submitted_at": None,
        "started_at": None,
        "finished_at": None,
        "attempts": 1,
        "cost": None,
        "artifacts": [],
        "pipeline": None,
    }


def test_a_broker_that_is_away_does_not_refuse_a_job(api: Api, broker: RecordingBroker) -> None:
    broker.reachable = False

    assert api.submit().status_code == 202


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"input": {}}, "provider"),
        ({"provider": "renders"}, "input"),
        (a_body(input=[1]), "input"),
        (a_body(input="text"), "input"),
        (a_body(provider=7), "provider"),
        (a_body(expected="soon"), "expected"),
        (a_body(expected=90), "expected"),
        (a_body(deadline="0s"), "deadline"),
        (a_body(deadline="99999d"), "deadline"),
        (a_body(metadata=[1]), "metadata"),
        (a_body(adopt=""), "adopt"),
        ({"provider": "renders", "adopt": 7}, "adopt"),
        (a_body(priority=1), "priority"),
        (a_body(callback_url="https://example.com/done"), "callback_url"),
    ],
)
def test_each_field_at_fault_is_named(api: Api, body: dict[str, Any], field: str) -> None:
    answer = api.post("/v1/jobs", body)

    assert answer.status_code == 422
    assert answer.content_type == "application/problem+json"
    assert [fault["field"] for fault in answer.json["errors"]] == [field]


def test_all_fields_at_fault_are_named_together(api: Api) -> None:
    answer = api.post("/v1/jobs", {"expected": "soon", "metadata": 1})

    assert {fault["field"] for fault in answer.json["errors"]} == {"provider", "input", "expected", "metadata"}


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"nonsense", b'{"provider": NaN}', b"\xff\xfe", b'{"a":' * 500 + b"1" + b"}" * 500, b'"\x00"'],
)
def test_a_body_that_is_no_json_object_is_refused_without_a_crash(api: Api, raw: bytes) -> None:
    answer = api.post("/v1/jobs", data=raw)

    assert answer.status_code in (400, 422)
    assert answer.content_type == "application/problem+json"


def test_text_that_no_database_stores_is_replaced(api: Api) -> None:
    raw = b'{"provider":"renders","input":{"a\\u0000":"b\\u0000","c":"\\ud800"},"metadata":{}}'

    job = api.post("/v1/jobs", data=raw).json

    assert job["input"] == {"a\ufffd": "b\ufffd", "c": "\ufffd"}
    assert api.get(f"/v1/jobs/{job['id']}").json["input"] == job["input"]


def test_a_body_beyond_a_mebibyte_is_too_large(api: Api) -> None:
    answer = api.submit(a_body(input={"prompt": "x" * 2**20}))

    assert answer.status_code == 413
    assert (answer.json["type"], answer.json["title"]) == ("urn:homing:problem:too-large", TooLarge.title)


def test_a_chunked_body_beyond_a_mebibyte_is_too_large_and_a_small_one_is_read(api: Api) -> None:
    def send(prompt: str) -> TestResponse:
        raw = json.dumps(a_body(input={"prompt": prompt})).encode()
        chunked = {"wsgi.input": io.BytesIO(raw), "wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked"}
        return api.post("/v1/jobs", environ_overrides=chunked)

    assert send("x" * 2**21).status_code == 413
    assert send("x").json["input"] == {"prompt": "x"}


def test_an_unknown_provider_is_not_found_and_a_likely_one_is_named(api: Api) -> None:
    answer = api.submit(a_body(provider="render"))

    assert answer.status_code == 404
    assert "did you mean 'renders'" in answer.json["detail"]


def test_another_tenants_provider_is_answered_like_one_that_does_not_exist(api: Api) -> None:
    theirs, missing = (api.submit(a_body(provider=name)) for name in ("theirs", "nobodys"))

    assert (theirs.status_code, missing.status_code) == (404, 404)
    assert theirs.json["detail"].replace("theirs", "nobodys") == missing.json["detail"]
    assert api.submit(a_body(provider="private")).status_code == 202


def test_a_run_is_adopted_once(api: Api) -> None:
    first = api.submit({"provider": "renders", "adopt": "p-9"})
    second = api.submit({"provider": "renders", "adopt": "p-9"})

    assert (first.status_code, second.status_code) == (202, 409)
    assert first.json["id"] in second.json["detail"]


def test_a_run_of_another_tenant_is_taken_and_does_not_name_its_job(api: Api, stranger: Api) -> None:
    theirs = stranger.submit({"provider": "renders", "adopt": "p-9"})

    answer = api.submit({"provider": "renders", "adopt": "p-9"})

    assert (theirs.status_code, answer.status_code) == (202, 409)
    assert theirs.json["id"] not in answer.text


def test_a_job_is_read_with_its_version_and_when_to_ask_again(api: Api, clock: FakeClock) -> None:
    job = api.submit().json

    answer = api.get(f"/v1/jobs/{job['id']}")

    assert answer.json == job
    assert answer.headers["ETag"] == '"1"'
    assert answer.headers["Retry-After"] == "1"


def test_a_job_that_has_ended_is_not_worth_asking_for_again(api: Api, runtime: Runtime) -> None:
    job = api.submit().json
    observe(runtime, job["id"], JobState.SUCCEEDED, output={"url": "x"}, cost=0.02)

    answer = api.get(f"/v1/jobs/{job['id']}")

    assert (answer.json["state"], answer.json["output"], answer.json["cost"]) == ("succeeded", {"url": "x"}, 0.02)
    assert "Retry-After" not in answer.headers


def test_a_version_the_client_has_is_not_sent_again(api: Api) -> None:
    job = api.submit().json

    assert api.get(f"/v1/jobs/{job['id']}", headers={"If-None-Match": '"1"'}).status_code == 304
    assert api.get(f"/v1/jobs/{job['id']}", headers={"If-None-Match": '"0"'}).status_code == 200


def test_the_list_shows_every_job_once_newest_first(api: Api, clock: FakeClock) -> None:
    made = []
    for _ in range(5):
        made.append(api.submit().json["id"])
        clock.advance(1)

    shown, cursor = [], None
    while True:
        query = {"limit": "2", **({"cursor": cursor} if cursor else {})}
        page = api.get("/v1/jobs", query_string=query).json
        shown += [job["id"] for job in page["data"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break

    assert shown == made[::-1]


def test_the_list_is_filtered(api: Api, runtime: Runtime, clock: FakeClock) -> None:
    plain = api.submit().json["id"]
    clock.advance(1)
    other = api.submit(a_body(provider="private", metadata={"order.no": "7", "n": 3, "paid": True})).json["id"]
    observe(runtime, other, JobState.RUNNING)

    def found(**query: str) -> list[str]:
        return [job["id"] for job in api.get("/v1/jobs", query_string=query).json["data"]]

    assert found(state="running") == [other]
    assert found(provider="renders") == [plain]
    assert found(review="true") == []
    assert found(review="false") == [other, plain]
    assert found(created_after="2026-01-01T00:00:00.5Z") == [other]
    assert found(created_after="2026-01-01T01:00:00.5 01:00") == [other]
    for text in ({"metadata.order.no": "7"}, {"metadata.n": "3"}, {"metadata.paid": "true"}):
        assert found(**text) == [other]
    assert found(**{"metadata.paid": "false"}) == found(**{"metadata.order.no": "8"}) == []
    assert found(**{"metadata.n": "3", "state": "pending"}) == []


def test_the_list_shows_what_waits_for_a_person(api: Api, database: Database, clock: FakeClock) -> None:
    new_job(database)
    late = new_job(database, review_reason="overdue", review_since=clock.now())["id"]

    for query in ("review=true", "review=overdue"):
        assert [job["id"] for job in api.get(f"/v1/jobs?{query}").json["data"]] == [late]
    assert api.get("/v1/jobs?review=budget").json["data"] == []


@pytest.mark.parametrize(
    "query",
    [
        "state=done",
        "limit=0",
        "limit=201",
        "limit=x",
        "cursor=%25",
        "review=perhaps",
        "created_after=today",
        "sate=running",
        'metadata.a"b=1',
        "metadata.=1",
        "created_after=2026-01-01T00:00:00",
    ],
)
def test_a_filter_that_cannot_be_meant_is_refused(api: Api, query: str) -> None:
    answer = api.get(f"/v1/jobs?{query}")

    assert answer.status_code == 422
    assert answer.json["errors"]


def test_the_history_tells_every_step_in_pages(api: Api, runtime: Runtime) -> None:
    job_id = api.submit().json["id"]
    observe(runtime, job_id, JobState.RUNNING)
    observe(runtime, job_id, JobState.SUCCEEDED)

    first = api.get(f"/v1/jobs/{job_id}/transitions?limit=1").json
    second = api.get(f"/v1/jobs/{job_id}/transitions?cursor={first['next_cursor']}").json

    steps = [(row["from"], row["to"], row["source"], row["applied"]) for row in first["data"] + second["data"]]
    assert steps == [("pending", "running", "webhook", True), ("running", "succeeded", "webhook", True)]
    assert second["next_cursor"] is None


def test_a_job_that_was_never_sent_is_canceled_at_once(api: Api) -> None:
    job = api.submit().json

    answer = api.post(f"/v1/jobs/{job['id']}/cancel")

    assert (answer.status_code, answer.json["state"]) == (202, "canceled")


def test_a_job_that_has_ended_cannot_be_canceled(api: Api, runtime: Runtime) -> None:
    """F34: the answer is a refusal that names the real state, never a fake "canceled"."""
    job_id = api.submit().json["id"]
    observe(runtime, job_id, JobState.SUCCEEDED)

    answer = api.post(f"/v1/jobs/{job_id}/cancel")

    assert answer.status_code == 409
    assert "succeeded" in answer.json["detail"]
    assert api.get(f"/v1/jobs/{job_id}").json["state"] == "succeeded"


def test_a_second_cancel_changes_nothing(api: Api, runtime: Runtime) -> None:
    """F34."""
    job_id = api.submit().json["id"]
    observe(runtime, job_id, JobState.RUNNING)

    first, second = (api.post(f"/v1/jobs/{job_id}/cancel") for _ in range(2))

    assert (first.status_code, second.status_code) == (202, 202)
    assert first.json == second.json
    assert first.json["state"] == "running"
    assert first.json["cancel_requested_at"] is not None


def test_a_key_can_be_required(api: Api, runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = runtime.settings.model_copy(update={"require_idempotency_key": True})
    monkeypatch.setattr(runtime, "settings", settings)

    assert api.submit().status_code == 400
    assert api.submit(key="k-1").status_code == 202


def test_a_job_keeps_its_own_deadline_and_else_has_the_providers(api: Api) -> None:
    assert api.submit().json["deadline_at"] == "2026-01-01T01:00:00.000000Z"
    assert api.submit(a_body(deadline="5m")).json["deadline_at"] == "2026-01-01T00:05:00.000000Z"
