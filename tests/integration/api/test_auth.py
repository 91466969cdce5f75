from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from jobs.services.keys import Role, list_keys, revoke_key
from jobs.services.runtime import Runtime
from jobs.storage.database import Database
from tests.factories import new_job
from tests.integration.api.conftest import Api, a_body, login

GUARDED = ("/v1/jobs", "/v1/jobs/job_1", "/v1/dead-letters", "/v1/events", "/v1/providers")
KEY = "hk_" + "a" * 40


@pytest.mark.parametrize("path", GUARDED)
def test_without_a_key_nothing_is_told(client: FlaskClient, path: str) -> None:
    answer = client.get(path)

    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert answer.json["type"] == "urn:homing:problem:unauthorized"


@pytest.mark.parametrize(
    "header",
    [
        f"Bearer {KEY}\xe9",
        "Bearer \xe9\xff",
        f"Bearer {KEY}\u20ac".encode().decode("latin-1"),
        "\xff" * 100,
        "Bearer",
        "Bearer ",
        f"Basic {KEY}",
        f"Bearer  {KEY} {KEY}",
        f"Bearer {KEY}",
        f"Bearer {'a' * 5000}",
        "Bearer ' OR 1=1 --",
    ],
)
def test_whatever_bytes_a_token_holds_the_answer_is_401(client: FlaskClient, header: str) -> None:
    """F02: one non-ASCII byte in our own bearer token on POST /v1/jobs: 401, no crash, nothing stored."""
    answer = client.post("/v1/jobs", json=a_body(), environ_overrides={"HTTP_AUTHORIZATION": header})

    assert answer.status_code == 401
    assert answer.content_type == "application/problem+json"
    assert KEY not in answer.text


def test_a_refused_token_leaves_no_job(client: FlaskClient, api: Api) -> None:
    """F02."""
    client.post("/v1/jobs", json=a_body(), environ_overrides={"HTTP_AUTHORIZATION": "Bearer \xe9"})

    assert api.get("/v1/jobs").json["data"] == []


def test_a_revoked_key_is_refused_at_once(api: Api, database: Database) -> None:
    assert api.get("/v1/jobs").status_code == 200

    revoke_key(database, api.key_id)

    assert api.get("/v1/jobs").status_code == 401


def test_the_database_holds_no_key_that_could_be_used(api: Api, database: Database) -> None:
    assert api.key not in str(list_keys(database))


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/jobs", a_body()),
        ("/v1/jobs/job_1/cancel", None),
        ("/v1/jobs/job_1/resolve", {"action": "poll", "reason": "r"}),
        ("/v1/dead-letters/dl_1/redrive", None),
        ("/v1/dead-letters/dl_1/discard", None),
        ("/v1/providers/renders/pause", None),
        ("/v1/providers/renders/resume", None),
    ],
)
def test_a_viewer_changes_nothing(viewer: Api, path: str, body: object) -> None:
    answer = viewer.post(path, body)

    assert answer.status_code == 403
    assert "operator" in answer.json["detail"]


def test_a_viewer_reads(viewer: Api) -> None:
    for path in ("/v1/jobs", "/v1/dead-letters", "/v1/events", "/v1/providers"):
        assert viewer.get(path).status_code == 200


def test_an_operator_pauses_no_provider(api: Api) -> None:
    for verb in ("pause", "resume"):
        answer = api.post(f"/v1/providers/renders/{verb}")
        assert answer.status_code == 403
        assert "admin" in answer.json["detail"]


def test_another_tenants_job_is_not_there(api: Api, stranger: Api) -> None:
    job_id = api.submit().json["id"]
    own = f"/v1/jobs/{job_id}"
    missing = stranger.get("/v1/jobs/job_0000")

    answers = [
        stranger.get(own),
        stranger.get(f"{own}/transitions"),
        stranger.post(f"{own}/cancel"),
        stranger.post(f"{own}/resolve", {"action": "poll", "reason": "r"}),
    ]

    assert {answer.status_code for answer in answers} == {404}
    assert answers[0].json["detail"].replace(job_id, "job_0000") == missing.json["detail"]
    assert stranger.get("/v1/jobs").json["data"] == []
    assert stranger.get(f"/v1/events?job={job_id}").json["data"] == []
    assert api.get(own).json["state"] == "pending"


def test_a_long_poll_is_no_way_around_the_tenant(stranger: Api, database: Database) -> None:
    job_id = new_job(database)["id"]

    assert stranger.get(f"/v1/jobs/{job_id}?wait=30&since=1").status_code == 404


def test_each_role_includes_the_ones_before_it() -> None:
    order = [Role.VIEWER, Role.OPERATOR, Role.ADMIN]

    assert [[one.includes(other) for other in order] for one in order] == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]


def test_a_database_that_is_away_is_no_wrong_key(runtime: Runtime, client: FlaskClient, database: Database) -> None:
    api = login(client, database)
    with database.write() as tx:
        tx.connection.exec_driver_sql("DROP TABLE api_keys")

    answer = api.get("/v1/jobs")

    assert answer.status_code in (500, 503)
    assert "api_keys" not in answer.text
