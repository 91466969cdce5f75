from __future__ import annotations

from datetime import timedelta

import pytest
from flask.testing import FlaskClient

from homing.web import create_app
from jobs.core.errors import Conflict, FieldFault, JobsError, Stale, Unavailable, UnknownOutcome
from jobs.services.runtime import Runtime
from tests.integration.api.conftest import Api


def test_a_path_that_is_nowhere_is_a_problem(client: FlaskClient) -> None:
    answer = client.get("/v1/nothing")

    assert answer.status_code == 404
    assert answer.content_type == "application/problem+json"
    assert answer.json["type"] == "urn:homing:problem:not-found"
    assert answer.json["status"] == 404


def test_a_method_that_is_not_there_is_a_problem_and_names_those_that_are(api: Api) -> None:
    answer = api.client.delete("/v1/jobs", headers={"Authorization": f"Bearer {api.key}"})

    assert answer.status_code == 405
    assert answer.content_type == "application/problem+json"
    assert {"GET", "POST"} <= set(answer.headers["Allow"].replace(" ", "").split(","))


class Surprise(Exception):
    """What nobody foresaw."""


@pytest.mark.parametrize(
    ("error", "status", "slug", "tells"),
    [
        (Conflict("the job has ended"), 409, "conflict", "the job has ended"),
        (Stale("version 3"), 409, "stale", "version 3"),
        (Unavailable("connection to db.internal refused"), 503, "unavailable", None),
        (UnknownOutcome("host db.internal"), 502, "unknown-outcome", None),
        (Surprise("password=hunter2"), 500, "internal", None),
    ],
)
def test_each_error_has_its_status_and_tells_no_secrets(
    runtime: Runtime, error: Exception, status: int, slug: str, tells: str | None
) -> None:
    app = create_app(runtime)
    app.add_url_rule("/fails", view_func=_raiser(error))

    answer = app.test_client().get("/fails")

    assert (answer.status_code, answer.content_type) == (status, "application/problem+json")
    assert answer.json["type"] == f"urn:homing:problem:{slug}"
    assert set(answer.json) == {"type", "title", "status", "detail"}
    if tells:
        assert answer.json["detail"] == tells
    assert "internal" not in answer.json["detail"]
    assert "hunter2" not in answer.text


def test_an_outage_says_when_to_come_again(runtime: Runtime) -> None:
    app = create_app(runtime)
    app.add_url_rule("/soon", view_func=_raiser(Unavailable("away")))
    app.add_url_rule("/later", view_func=_raiser(Unavailable("away", retry_after=timedelta(seconds=6.2))), endpoint="b")

    assert app.test_client().get("/soon").headers["Retry-After"] == "2"
    assert app.test_client().get("/later").headers["Retry-After"] == "7"


def test_fields_at_fault_are_listed(runtime: Runtime) -> None:
    app = create_app(runtime)
    error: JobsError = Conflict("no", fields=[FieldFault("adopt", "has a job already")])
    app.add_url_rule("/fails", view_func=_raiser(error))

    assert app.test_client().get("/fails").json["errors"] == [{"field": "adopt", "message": "has a job already"}]


def test_each_answer_carries_the_requests_name(client: FlaskClient) -> None:
    made = client.get("/healthz").headers["X-Request-Id"]
    sent = client.get("/healthz", headers={"X-Request-Id": "mine-1"}).headers["X-Request-Id"]
    junk = client.get("/healthz", headers={"X-Request-Id": "a b"}).headers["X-Request-Id"]

    assert made.startswith("req_")
    assert sent == "mine-1"
    assert junk.startswith("req_")


def test_answers_are_neither_stored_nor_guessed_at(api: Api) -> None:
    headers = api.get("/v1/jobs").headers

    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Content-Type-Options"] == "nosniff"


def _raiser(error: Exception):  # type: ignore[no-untyped-def] # a view
    def fails() -> None:
        raise error

    return fails


@pytest.mark.parametrize(
    "path",
    [
        "/v1/jobs/%00",
        "/v1/jobs/%00/transitions",
        "/v1/jobs?provider=%00",
        "/v1/jobs?metadata.run=%00",
        "/v1/events?type=%00*",
        "/v1/events?job=%00",
        "/v1/dead-letters?kind=%00",
        "/v1/dead-letters?reason=%00&provider=%00&endpoint=%00",
        "/v1/dead-letters/%00",
        "/v1/dead-letters/redrives/%00",
        "/v1/inbox?provider=%00",
        "/v1/inbox/%00",
    ],
)
def test_an_encoded_nul_in_a_url_finds_nothing_on_either_database(api: Api, path: str) -> None:
    """PostgreSQL refuses U+0000 in any text, also in one that is only looked for: it was a 500."""
    answer = api.get(path)

    assert answer.status_code == 404 or answer.json["data"] == [], answer.text


@pytest.mark.parametrize(
    "path",
    [
        "/v1/jobs/%00/cancel",
        "/v1/dead-letters/%00/redrive",
        "/v1/dead-letters/redrives/%00/cancel",
        "/v1/inbox/%00/reprocess",
    ],
)
def test_nothing_can_be_done_to_what_an_encoded_nul_names(api: Api, path: str) -> None:
    assert api.post(path).status_code == 404
