"""``/v1/endpoints``, ``/v1/deliveries``, ``/v1/signing-secret`` and ``callback_url``, as a client sees them."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

import pytest
import sqlalchemy as sa
from flask.testing import FlaskClient

from jobs.core.observations import Source
from jobs.core.states import JobState
from jobs.net.guard import Guard
from jobs.services.keys import Role
from jobs.services.relay import relay
from jobs.services.runtime import Runtime
from jobs.storage.database import Database
from tests.factories import seen
from tests.integration.api.conftest import Api, a_body, login
from webhooks.outgoing.attempt import Answered
from webhooks.outgoing.dispatch import claim_due
from webhooks.outgoing.fan_out import fan_out
from webhooks.outgoing.rounds import deliver_all
from webhooks.outgoing.schema import endpoints, signing_secrets

URL = "https://203.0.113.9/hooks"
OWN_SECRET = "whsec_MTIzNDU2Nzg5MDEyMzQ1Njc4OTA="


@pytest.fixture(autouse=True)
def _ready(runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> None:
    runtime.fan_outs = (fan_out,)
    runtime.guard = Guard(lifted=True)
    folder = tmp_path_factory.mktemp("data")
    runtime.settings = runtime.settings.model_copy(update={"data_dir": folder})


def make(api: Api, **fields: Any) -> dict[str, Any]:
    made = api.post("/v1/endpoints", {"url": URL, "events": ["job.*"], **fields})
    assert made.status_code == 201, made.json
    document: dict[str, Any] = made.json
    return document


def patch(api: Api, path: str, body: dict[str, Any]) -> Any:
    return api.client.patch(path, json=body, headers={"Authorization": f"Bearer {api.key}"})


def delete(api: Api, path: str) -> Any:
    return api.client.delete(path, headers={"Authorization": f"Bearer {api.key}"})


def test_an_endpoint_is_made_shown_changed_and_deleted(api: Api) -> None:
    made = make(api, description="ours", rate="5/s", concurrency=2)
    path = f"/v1/endpoints/{made['id']}"

    assert made["id"].startswith("ep_")
    assert made["secret"].startswith("whsec_")
    assert (made["state"], made["rate"], made["concurrency"]) == ("enabled", "5/s", 2)
    shown = api.get(path).json
    assert shown == {name: value for name, value in made.items() if name != "secret"}
    assert api.get("/v1/endpoints").json["data"] == [shown]
    changed = patch(api, path, {"events": ["job.failed"]}).json
    assert (changed["events"], changed["url"]) == (["job.failed"], URL)
    assert delete(api, path).status_code == 204
    assert api.get(path).status_code == 404
    assert api.get("/v1/endpoints").json["data"] == []


def test_a_secret_of_ones_own_is_taken_and_no_secret_is_stored_in_plain_text(api: Api, database: Database) -> None:
    made = make(api, secret=OWN_SECRET)

    assert made["secret"] == OWN_SECRET
    with database.read() as tx:
        stored = str(tx.rows(sa.select(endpoints)))
    assert OWN_SECRET not in stored
    assert "MTIzNDU2" not in stored


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"events": ["job.succeded"]}, "events"),
        ({"events": []}, "events"),
        ({"secret": "hunter2"}, "secret"),
        ({"secret": "whsec_AAAA"}, "secret"),
        ({"rate": "fast"}, "rate"),
        ({"concurrency": 0}, "concurrency"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_what_is_not_valid_is_said_by_field(api: Api, fields: dict[str, Any], field: str) -> None:
    answer = api.post("/v1/endpoints", {"url": URL, "events": ["job.*"], **fields})

    assert answer.status_code == 422
    assert any(fault["field"].startswith(field) for fault in answer.json["errors"])


@pytest.mark.parametrize(
    ("url", "rule"),
    [("http://127.0.0.1/", "loopback"), ("http://[::ffff:169.254.169.254]/", ""), ("ftp://x.example/", "")],
)
@pytest.mark.parametrize("field", ["url", "callback_url"])
def test_the_guards_refusal_names_its_rule(api: Api, runtime: Runtime, url: str, rule: str, field: str) -> None:
    runtime.guard = Guard()

    body = {"url": url, "events": ["job.*"]} if field == "url" else a_body(callback_url=url)
    answer = api.post("/v1/endpoints" if field == "url" else "/v1/jobs", body)

    assert answer.status_code == 422
    assert answer.json["type"] == "urn:homing:problem:address-refused"
    assert f"(rule: {rule}" in answer.json["detail"]
    assert answer.json["errors"][0]["field"] == field


def test_rotating_shows_the_new_secret_once(api: Api) -> None:
    made = make(api)

    rotated = api.post(f"/v1/endpoints/{made['id']}/rotate-secret", {}).json

    assert rotated["secret"] != made["secret"]
    assert "secret" not in api.get(f"/v1/endpoints/{made['id']}").json


def test_disable_enable_test_and_recover(api: Api) -> None:
    path = f"/v1/endpoints/{make(api)['id']}"

    disabled = api.post(f"{path}/disable").json
    assert (disabled["state"], disabled["disabled_reason"]) == ("disabled", f"disabled by key {api.key_id}")
    assert api.post(f"{path}/test").status_code == 409
    assert api.post(f"{path}/enable").json["state"] == "enabled"
    tested = api.post(f"{path}/test")
    assert (tested.status_code, tested.json["type"], tested.json["state"]) == (202, "endpoint.test", "pending")
    recovering = api.post(f"{path}/recover", {"since": "2025-12-31T00:00:00Z"})
    assert (recovering.status_code, recovering.json["recovering"]) == (202, True)


def test_another_tenants_endpoint_is_not_there(api: Api, stranger: Api) -> None:
    path = f"/v1/endpoints/{make(api)['id']}"
    delivery = api.post(f"{path}/test").json["id"]

    for action in ("disable", "enable", "rotate-secret", "test"):
        assert stranger.post(f"{path}/{action}", {} if action == "rotate-secret" else None).status_code == 404
    assert stranger.get(path).status_code == 404
    assert patch(stranger, path, {"events": ["job.*"]}).status_code == 404
    assert delete(stranger, path).status_code == 404
    assert stranger.get(f"/v1/deliveries/{delivery}").status_code == 404
    assert stranger.post(f"/v1/deliveries/{delivery}/resend").status_code == 404
    assert stranger.get("/v1/deliveries").json["data"] == []


def test_a_viewer_reads_and_changes_nothing(api: Api, viewer: Api) -> None:
    path = f"/v1/endpoints/{make(api)['id']}"

    assert viewer.get(path).status_code == 200
    assert viewer.get("/v1/deliveries").status_code == 200
    assert viewer.get("/v1/signing-secret").status_code == 403
    assert viewer.post("/v1/endpoints", {"url": URL, "events": ["job.*"]}).status_code == 403
    assert patch(viewer, path, {"events": ["job.*"]}).status_code == 403
    assert delete(viewer, path).status_code == 403


def test_the_signing_secret_is_the_tenants_and_stays(
    api: Api, stranger: Api, client: FlaskClient, database: Database
) -> None:
    mine = api.get("/v1/signing-secret").json["secret"]

    assert mine.startswith("whsec_")
    assert login(client, database, role=Role.ADMIN).get("/v1/signing-secret").json["secret"] == mine
    assert stranger.get("/v1/signing-secret").json["secret"] != mine
    with database.read() as tx:
        assert mine not in str(tx.rows(sa.select(signing_secrets)))


def end(runtime: Runtime, job_id: str) -> None:
    with runtime.database.write() as tx:
        runtime.observer.observe(tx, job_id, seen(JobState.SUCCEEDED, source=Source.WEBHOOK, output={"n": 1}))
    relay(runtime)


def test_a_callback_url_is_told_the_end_and_listed_like_any_delivery(api: Api, runtime: Runtime) -> None:
    job = api.submit(a_body(callback_url=f"{URL}?n=1")).json
    secret = api.get("/v1/signing-secret").json["secret"]
    sent = []

    def send(url: str, *, headers: Any, body: bytes) -> Answered:
        sent.append((url, headers, body))
        return Answered(200)

    end(runtime, job["id"])
    deliver_all(runtime, claim_due(runtime), send=send)

    (delivery,) = api.get(f"/v1/deliveries?job={job['id']}").json["data"]
    assert (delivery["type"], delivery["state"], delivery["url"]) == ("job.succeeded", "succeeded", f"{URL}?n=1")
    assert api.get("/v1/endpoints").json["data"] == []
    ((url, headers, body),) = sent
    assert url == f"{URL}?n=1"
    assert api.get(f"/v1/jobs/{job['id']}").json["output"] == {"n": 1}
    assert headers["X-Signature"] == "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    log = api.get(f"/v1/deliveries/{delivery['id']}").json["attempts"]
    assert [(line["status"], line["error"]) for line in log] == [(200, None)]


def test_the_callback_url_is_part_of_what_was_asked(api: Api) -> None:
    first = api.submit(a_body(callback_url=URL), key="k")

    assert api.submit(a_body(callback_url=URL), key="k").json["id"] == first.json["id"]
    assert api.submit(a_body(callback_url=f"{URL}/other"), key="k").status_code == 422
