"""`/v1/dead-letters/redrive` and what it begins."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.api import documents
from jobs.clock import FakeClock
from jobs.services.keys import Role, create_key
from jobs.services.letters.redriving import advance
from jobs.services.runtime import Runtime
from jobs.storage.database import Database
from jobs.storage.dead_letters import dead_letter
from tests.factories import new_job
from tests.integration.api.conftest import TENANT, Api

REDRIVE = "/v1/dead-letters/redrive"


def dead_submits(database: Database, count: int) -> list[str]:
    ids = []
    for _ in range(count):
        job_id = new_job(database, tenant=TENANT, next_submit_at=None)["id"]
        with database.write() as tx:
            facts = {"reason": "refused", "attempts": 8, "tenant": TENANT, "job_id": job_id}
            ids.append(dead_letter(tx, "submit", job_id, **facts))
    return ids


def test_a_redrive_of_many_is_asked_for_watched_and_done(
    api: Api, runtime: Runtime, database: Database, clock: FakeClock
) -> None:
    dead_submits(database, 3)

    begun = api.post(REDRIVE, {"kind": "submit", "reason": "REFUSED", "rate": "60/m"})
    location = begun.headers["Location"]
    for _ in range(5):
        advance(runtime)
        clock.advance(1)

    assert begun.status_code == 202
    documents.Redrive.model_validate(begun.json)
    assert begun.json["filters"] == {"kind": "submit", "reason": "REFUSED"}
    assert (begun.json["state"], begun.json["total"], begun.json["rate"]) == ("running", 3, "1/s")
    ended = api.get(location).json
    assert (ended["state"], ended["redriven"], ended["asked_by"]) == ("done", 3, api.key_id)
    assert api.get("/v1/dead-letters?open=true").json["data"] == []
    assert [each["id"] for each in api.get("/v1/dead-letters/redrives").json["data"]] == [ended["id"]]


def test_the_same_key_is_the_same_redrive(api: Api, database: Database) -> None:
    dead_submits(database, 1)
    headers = {"Idempotency-Key": "k-1"}

    first, again = (api.post(REDRIVE, {"kind": "submit"}, headers=headers) for _ in range(2))
    other = api.post(REDRIVE, {"kind": "poll"}, headers=headers)

    assert first.json["id"] == again.json["id"]
    assert (first.headers.get("Idempotent-Replayed"), again.headers["Idempotent-Replayed"]) == (None, "true")
    assert other.status_code == 422


def test_an_operators_key_and_an_admins_are_two(api: Api, database: Database) -> None:
    """The same words from them reach different letters: an admin's also those that belong to no tenant."""
    dead_submits(database, 1)
    with database.write() as tx:
        dead_letter(tx, "inbox", "evt_nobodys", reason="no JSON", attempts=1, tenant=None, job_id=None, evidence={})
    operator = Api(api.client, create_key(database, tenant=TENANT, role=Role.OPERATOR).key)
    admin = Api(api.client, create_key(database, tenant=TENANT, role=Role.ADMIN).key)

    begun = [each.post(REDRIVE, {}, headers={"Idempotency-Key": "k-1"}) for each in (operator, admin, operator, admin)]

    assert [each.json["total"] for each in begun] == [1, 2, 1, 2]
    assert [each.headers.get("Idempotent-Replayed") for each in begun] == [None, None, "true", "true"]
    assert len({each.json["id"] for each in begun}) == 2


def test_a_redrive_can_be_ended(api: Api, database: Database) -> None:
    dead_submits(database, 2)
    path = f"/v1/dead-letters/redrives/{api.post(REDRIVE, {}).json['id']}"

    assert api.post(f"{path}/cancel").json["state"] == "canceled"
    assert api.post(f"{path}/cancel").status_code == 409


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"rate": "0/s"}, "rate"),
        ({"rate": "101/s"}, "rate"),
        ({"rate": 1e-12}, "rate"),  # its second letter would be due after the year 9999
        ({"rate": True}, "rate"),
        ({"since": "yesterday"}, "since"),
        ({"kind": 7}, "kind"),
        ({"kinds": "submit"}, "kinds"),
    ],
)
def test_what_cannot_be_meant_is_refused(api: Api, body: dict[str, Any], field: str) -> None:
    answer = api.post(REDRIVE, body)

    assert answer.status_code == 422
    assert [fault["field"] for fault in answer.json["errors"]] == [field]


def test_a_refusal_is_in_our_words_alone(api: Api) -> None:
    (fault,) = api.post(REDRIVE, {"rate": "fast"}).json["errors"]

    assert fault["message"].startswith("'fast' is not a rate")


def test_a_bare_number_is_one_rate_per_second(api: Api) -> None:
    assert api.post(REDRIVE, {"rate": 5}).json["rate"] == "5/s"
    assert api.post(REDRIVE, {"rate": "1/d"}).status_code == 202
    assert api.post(REDRIVE, {}).json["rate"] == "10/s"


def test_a_viewer_may_look_and_not_ask(api: Api, database: Database) -> None:
    dead_submits(database, 1)
    redrive_id = api.post(REDRIVE, {}).json["id"]
    viewer = Api(api.client, create_key(database, tenant=TENANT, role=Role.VIEWER).key)

    assert viewer.get(f"/v1/dead-letters/redrives/{redrive_id}").status_code == 200
    assert viewer.post(REDRIVE, {}).status_code == 403
    assert viewer.post(f"/v1/dead-letters/redrives/{redrive_id}/cancel").status_code == 403


def test_another_tenants_redrive_is_not_there(api: Api, stranger: Api, database: Database) -> None:
    dead_submits(database, 1)
    own = f"/v1/dead-letters/redrives/{api.post(REDRIVE, {}).json['id']}"

    assert {stranger.get(own).status_code, stranger.post(f"{own}/cancel").status_code} == {404}
    assert stranger.get("/v1/dead-letters/redrives").json["data"] == []
    assert stranger.post(REDRIVE, {}).json["total"] == 0


def test_the_list_of_letters_takes_the_same_filters(api: Api, database: Database, clock: FakeClock) -> None:
    (first,) = dead_submits(database, 1)
    at = clock.now().isoformat().replace("+00:00", "Z")
    clock.advance(60)
    (second,) = dead_submits(database, 1)

    def found(query: str) -> list[str]:
        return [letter["id"] for letter in api.get(f"/v1/dead-letters?{query}").json["data"]]

    assert found("provider=renders&reason=REFU") == [second, first]
    assert found(f"until={at}") == []
    assert found(f"since={at}") == [second, first]
    assert found("endpoint=ep_1") == found("reason=%25") == []
