"""A browser's own EventSource follows a job to its end, from any site and over a server that restarts, then stops."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome

from jobs.core.states import JobState
from jobs.services.keys import Principal, create_key
from jobs.services.streams.tokens import make_token
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
def elsewhere() -> Iterator[str]:
    """A page of somebody else's site: `localhost` is another site than `127.0.0.1`."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = b"<!doctype html><title>A shop that sells videos</title>"
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *args: object) -> None:
            pass

    site = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=site.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://localhost:{site.server_address[1]}/"
    site.shutdown()
    thread.join()
    site.server_close()


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
    wait_until(lambda: is_closed(browser), within_s=_SOON_S, what="the end of the stream")

    events = told(browser)
    assert [name for name, _ in events] == ["snapshot", "job.submitted", "job.started", "job.succeeded"]
    assert len({place for _, place in events}) == 4


@pytest.mark.timeout(120)
def test_a_page_of_another_site_follows_a_job_to_its_end_by_a_token_alone(
    browser: Chrome, server: WebServer, database: Database, elsewhere: str
) -> None:
    job_id = new_job(database)["id"]
    browser.get(elsewhere)
    browser.execute_script(_FOLLOW, f"{server.url}/v1/jobs/{job_id}/events?token={a_token(database, job_id)}")
    wait_until(lambda: len(told(browser)) == 1, within_s=_SOON_S, what="the snapshot")

    observe(database, job_id, JobState.RUNNING)
    server.stop()
    observe(database, job_id, JobState.SUCCEEDED)
    server.start()
    wait_until(lambda: len(told(browser)) == 4, within_s=_SOON_S, what="the end of the job")
    wait_until(lambda: is_closed(browser), within_s=_SOON_S, what="the end of the stream")

    assert [name for name, _ in told(browser)] == ["snapshot", "job.submitted", "job.started", "job.succeeded"]
    assert browser.execute_script("return location.origin") != server.url
    assert browser.get_cookies() == []


@pytest.mark.timeout(120)
@pytest.mark.parametrize("query", ["", "?token=guessed"])
def test_a_page_of_another_site_is_told_nothing_without_a_token(
    browser: Chrome, server: WebServer, database: Database, elsewhere: str, query: str
) -> None:
    job_id = new_job(database)["id"]
    browser.get(elsewhere)

    browser.execute_script(_FOLLOW, f"{server.url}/v1/jobs/{job_id}/events{query}")
    wait_until(lambda: is_closed(browser), within_s=_SOON_S, what="the refusal")

    assert told(browser) == []


def is_closed(browser: Chrome) -> bool:
    """Whether the source has given up, which it does only where the server tells it to."""
    return bool(browser.execute_script("return source.readyState === EventSource.CLOSED"))
