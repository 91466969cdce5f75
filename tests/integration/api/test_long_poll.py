from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from apiflask import APIFlask
from werkzeug.test import TestResponse

from homing.web import create_app
from jobs.api.jobs import WAITING_ROOM
from jobs.core.states import JobState
from jobs.services.runtime import Runtime
from jobs.services.waiting import WaitingRoom
from jobs.storage.database import Database
from tests.factories import seen
from tests.integration.api.conftest import Api, login
from tests.services.waiting import wait_until


@pytest.fixture
def app(runtime: Runtime) -> APIFlask:
    return create_app(runtime)


@pytest.fixture
def room(app: APIFlask) -> WaitingRoom:
    found: WaitingRoom = app.extensions[WAITING_ROOM]
    return found


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as threads:
        yield threads


@pytest.fixture
def api(app: APIFlask, database: Database) -> Api:
    return login(app.test_client(), database)


def ask(pool: ThreadPoolExecutor, app: APIFlask, api: Api, path: str) -> Future[TestResponse]:
    return pool.submit(Api(app.test_client(), api.key).get, path)


def observe(runtime: Runtime, job_id: str, state: JobState) -> None:
    with runtime.database.write() as tx:
        runtime.observer.observe(tx, job_id, seen(state))


def test_a_waiter_is_answered_when_the_job_changes(
    app: APIFlask, api: Api, room: WaitingRoom, pool: ThreadPoolExecutor, runtime: Runtime
) -> None:
    job = api.submit().json
    waiting = ask(pool, app, api, f"/v1/jobs/{job['id']}?wait=30&since={job['version']}")
    wait_until(lambda: room.occupied == 1, within_s=10, what="the waiter's arrival")

    observe(runtime, job["id"], JobState.RUNNING)

    answer = waiting.result(timeout=10)
    assert answer.json["state"] == "running"
    assert answer.json["version"] > job["version"]
    assert answer.headers["ETag"] == f'"{answer.json["version"]}"'


def test_a_change_that_was_missed_is_answered_at_once(api: Api, room: WaitingRoom, runtime: Runtime) -> None:
    job = api.submit().json
    observe(runtime, job["id"], JobState.SUCCEEDED)

    answer = api.get(f"/v1/jobs/{job['id']}?wait=30&since={job['version']}")

    assert answer.json["state"] == "succeeded"
    assert room.occupied == 0


def test_without_a_change_the_job_is_answered_as_it_is(api: Api) -> None:
    job = api.submit().json

    answer = api.get(f"/v1/jobs/{job['id']}?wait=1&since={job['version']}")

    assert (answer.status_code, answer.json) == (200, job)


def test_waiters_beyond_a_quarter_of_the_threads_are_answered_at_once(
    app: APIFlask, api: Api, room: WaitingRoom, pool: ThreadPoolExecutor, runtime: Runtime
) -> None:
    job = api.submit().json
    path = f"/v1/jobs/{job['id']}?wait=30&since={job['version']}"
    waiting = [ask(pool, app, api, path) for _ in range(4)]
    wait_until(lambda: room.occupied == 4, within_s=10, what="the arrival of four waiters")

    fifth = api.get(path)

    assert fifth.json == job
    assert not any(waiter.done() for waiter in waiting)
    observe(runtime, job["id"], JobState.RUNNING)
    assert {waiter.result(timeout=10).json["state"] for waiter in waiting} == {"running"}


@pytest.mark.parametrize("query", ["wait=-1", "wait=soon", "since=-1", "since=x", "wait=1&for=ever"])
def test_a_wait_that_cannot_be_meant_is_refused(api: Api, query: str) -> None:
    job = api.submit().json

    assert api.get(f"/v1/jobs/{job['id']}?{query}").status_code == 422
