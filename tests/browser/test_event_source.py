"""A browser's own EventSource follows a job to its end over a server that restarts, and then stops."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome

from jobs.core.states import JobState
from jobs.services.keys import Principal, create_key
from jobs.services.stream_tokens import make_token
from jobs.storage.database import Database
from tests.e2e.web_server import SECRET_KEY, WebServer
from tests.factories import TENANT, an_observer, new_job, seen
from tests.services.waiting import wait_until

_SOON_S = 20
_FOLLOW = """
window.told = [];
window.source = new EventSource(arguments[0]);
for (const type of ["snapshot", "job.submitted", "job.started", "job.succeeded"])
  source.addEventListener(type, event => told.push([type, event.lastEventId]));
"""


@pytest.fixture
def server(sqlite_url: str, tmp_path: Path) -> Iterator[WebServer]:
    started = WebServer(sqlite_url, tmp_path, options=("--blocking-threads", "32"))
    started.start()
    yield started
    started.stop()


@pytest.fixture
def database(sqlite_url: str) -> Iterator[Database]:
    connected = Database.connect(sqlite_url)
    yield connected
    connected.close()


def told(browser: Chrome) -> list[Any]:
    found: list[Any] = browser.execute_script("return window.told")
    return found


def observe(database: Database, job_id: str, state: JobState) -> None:
    with database.write() as tx:
        an_observer().observe(tx, job_id, seen(state))


def a_token(database: Database, job_id: str) -> str:
    key = create_key(database, tenant=TENANT)
    asking = Principal(key.tenant, key.role, key.id)
    return make_token([SECRET_KEY], asking, job_id=job_id, now=database.clock.now()).token


@pytest.mark.timeout(120)
def test_an_event_source_follows_a_job_to_its_end(browser: Chrome, server: WebServer, database: Database) -> None:
    job_id = new_job(database)["id"]
    browser.get(f"{server.url}/healthz")
    browser.execute_script(_FOLLOW, f"{server.url}/v1/jobs/{job_id}/events?token={a_token(database, job_id)}")
    wait_until(lambda: len(told(browser)) == 1, within_s=_SOON_S, what="the snapshot")

    observe(database, job_id, JobState.RUNNING)
    wait_until(lambda: len(told(browser)) == 3, within_s=_SOON_S, what="the start of the job")
    server.stop()
    observe(database, job_id, JobState.SUCCEEDED)
    server.start()
    wait_until(lambda: len(told(browser)) == 4, within_s=_SOON_S, what="the end of the job")
    wait_until(
        lambda: browser.execute_script("return source.readyState === EventSource.CLOSED"),
        within_s=_SOON_S,
        what="the end of the stream",
    )

    events = told(browser)
    assert [name for name, _ in events] == ["snapshot", "job.submitted", "job.started", "job.succeeded"]
    assert len({place for _, place in events}) == 4
