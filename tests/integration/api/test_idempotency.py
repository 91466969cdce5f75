"""F31: the client's Idempotency-Key used again, the same and differently."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from homing.web import create_app
from jobs.broker import SUBMIT
from jobs.services import creation
from jobs.services.runtime import Runtime
from jobs.storage.database import Database
from tests.fakes.broker import RecordingBroker
from tests.integration.api.conftest import Api, a_body, login

B = a_body(input={"model": "video", "prompt": "another"})


def at_once(runtime: Runtime, key: str, *calls: tuple[dict[str, Any], str]) -> list[TestResponse]:
    """Sends requests from threads of their own, all released together."""
    app = create_app(runtime)
    barrier = threading.Barrier(len(calls))

    def send(body: dict[str, Any], idempotency_key: str) -> TestResponse:
        with app.test_client() as client:
            barrier.wait(10)
            return Api(client, key).submit(body, key=idempotency_key)

    with ThreadPoolExecutor(len(calls)) as pool:
        return [sent.result(30) for sent in [pool.submit(send, *call) for call in calls]]


def jobs_of(api: Api) -> list[str]:
    return [job["id"] for job in api.get("/v1/jobs").json["data"]]


def test_the_same_request_again_answers_the_same_job(api: Api, broker: RecordingBroker) -> None:
    """F31: A twice in a row."""
    first, second = api.submit(key="k"), api.submit(key="k")

    assert (first.status_code, second.status_code) == (202, 202)
    assert second.json == first.json
    assert "Idempotent-Replayed" not in first.headers
    assert second.headers["Idempotent-Replayed"] == "true"
    assert second.headers["Location"] == first.headers["Location"]
    assert broker.take(SUBMIT) == [(first.json["id"],)]


def test_equal_requests_at_the_same_moment_make_one_job(api: Api, runtime: Runtime) -> None:
    """F31: A and A through a barrier."""
    answers = at_once(runtime, api.key, *[(a_body(), "k")] * 8)

    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json["id"] for answer in answers}) == 1
    assert sum("Idempotent-Replayed" not in answer.headers for answer in answers) == 1
    assert len(jobs_of(api)) == 1


def test_another_request_with_that_key_is_refused(api: Api) -> None:
    """F31: A then B."""
    first, other = api.submit(key="k"), api.submit(B, key="k")

    assert other.status_code == 422
    assert other.json["type"] == "urn:homing:problem:idempotency-key-reused"
    assert [fault["field"] for fault in other.json["errors"]] == ["Idempotency-Key"]
    assert jobs_of(api) == [first.json["id"]]


def test_another_request_is_refused_while_the_first_is_in_flight(api: Api, runtime: Runtime) -> None:
    """F31: A with B while A is in flight: whichever comes first wins, the other is a 422, never a second job."""
    for number in range(5):
        answers = at_once(runtime, api.key, (a_body(), f"k-{number}"), (B, f"k-{number}"))

        assert sorted(answer.status_code for answer in answers) == [202, 422]
    assert len(jobs_of(api)) == 5


def test_the_order_of_keys_and_blanks_do_not_matter(api: Api) -> None:
    """F31: A typed differently is A."""
    first = api.submit(a_body(metadata={"a": 1, "b": 2}), key="k")
    typed = json.dumps(a_body(metadata={"b": 2, "a": 1}), indent=4, sort_keys=True)

    second = api.post("/v1/jobs", data=typed, headers={"Idempotency-Key": "k"})

    assert second.json["id"] == first.json["id"]


def test_values_of_another_type_do_matter(api: Api) -> None:
    api.submit(a_body(metadata={"a": 1}), key="k")

    assert api.submit(a_body(metadata={"a": "1"}), key="k").status_code == 422
    assert api.submit(a_body(metadata={"a": True}), key="k").status_code == 422


def test_tenants_do_not_meet(api: Api, client: FlaskClient, database: Database) -> None:
    """F31: A from tenant 2."""
    globex = login(client, database, tenant="globex")

    first, second = api.submit(key="k"), globex.submit(key="k")

    assert second.status_code == 202
    assert second.json["id"] != first.json["id"]
    assert "Idempotent-Replayed" not in second.headers


def test_a_request_that_died_is_not_replayed(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """F31: A after the first A died with 500 before the commit."""
    write, deaths = creation.insert_request, iter([True, False])

    def die_once(*arguments: Any, **named: Any) -> bool:
        written = write(*arguments, **named)
        if next(deaths):
            raise RuntimeError("the process dies here")
        return written

    monkeypatch.setattr(creation, "insert_request", die_once)

    assert api.submit(key="k").status_code == 500
    assert jobs_of(api) == []
    second = api.submit(key="k")
    assert second.status_code == 202
    assert "Idempotent-Replayed" not in second.headers


def test_a_request_that_was_refused_is_not_replayed(api: Api) -> None:
    """F31: A after the first was refused; the key is still free."""
    assert api.post("/v1/jobs", data=b"{", headers={"Idempotency-Key": "k"}).status_code == 400
    assert api.submit({"provider": "renders"}, key="k").status_code == 422

    assert api.submit(key="k").status_code == 202


@pytest.mark.parametrize("key", ["", " ", "with blank", "é", "k" * 256, "\x7f"])
def test_a_key_that_is_no_visible_ascii_is_refused(api: Api, key: str) -> None:
    answer = api.post("/v1/jobs", a_body(), headers={"Idempotency-Key": key})

    assert answer.status_code == 422
    assert [fault["field"] for fault in answer.json["errors"]] == ["Idempotency-Key"]


def test_requests_without_a_key_are_jobs_of_their_own(api: Api) -> None:
    assert api.submit().json["id"] != api.submit().json["id"]


def test_the_job_is_shown_as_it_is_now(api: Api) -> None:
    first = api.submit(key="k").json
    api.post(f"/v1/jobs/{first['id']}/cancel")

    assert api.submit(key="k").json["state"] == "canceled"


def test_a_run_is_adopted_by_one_of_two_at_the_same_moment(api: Api, runtime: Runtime) -> None:
    body = {"provider": "renders", "adopt": "p-1"}

    answers = at_once(runtime, api.key, (body, "k-1"), (body, "k-2"))

    assert sorted(answer.status_code for answer in answers) == [202, 409]
