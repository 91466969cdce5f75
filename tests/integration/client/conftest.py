"""The whole web application over real HTTP, with a provider that somebody has to move on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from werkzeug.serving import WSGIRequestHandler, make_server

from homing.web import create_app
from jobs.api import streams as view
from jobs.clock import FakeClock
from jobs.core.observations import Progress
from jobs.core.states import JobState, is_terminal
from jobs.services.keys import Role, create_key
from jobs.services.relay import relay
from jobs.storage.database import Database
from jobs.storage.schema import jobs
from tests.factories import PROVIDER, TENANT
from tests.fakes.stage import Stage, a_stage

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class _Silent(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *_args: Any) -> None:
        """Says nothing."""


@dataclass
class Fleet:
    """An application that serves, and the stage behind it."""

    stage: Stage
    url: str
    key: str

    def move(self, job_id: str) -> None:
        """Brings a job one step further: sent, half done, done."""
        row = self.stage.job(job_id)
        if row["provider_job_id"] is None:
            self.stage.submit(job_id)
        elif row["progress"] is None:
            run = row["provider_job_id"]
            self.stage.provider.set(run, JobState.RUNNING, progress=Progress(fraction=0.5, message="half"))
            self.stage.poll(job_id)
        elif not is_terminal(JobState(row["state"])):
            self.stage.provider.finish(row["provider_job_id"])
            self.stage.poll(job_id)

    @contextmanager
    def moving(self) -> Iterator[None]:
        """Every job goes on by itself, and its events get their positions."""
        stopped = threading.Event()

        def move_all() -> None:
            while not stopped.wait(0.05):
                for row in self.stage.rows(jobs):
                    self.move(row["id"])
                relay(self.stage.runtime)

        thread = threading.Thread(target=move_all)
        thread.start()
        try:
            yield
        finally:
            stopped.set()
            thread.join()


@contextmanager
def serving(stage: Stage, proxy: Callable[[Wsgi], Wsgi]) -> Iterator[Fleet]:
    """Serves the application behind a proxy."""
    app = create_app(stage.runtime)
    app.extensions[view.STREAMS]._period_s = 0.02
    server = make_server("127.0.0.1", 0, proxy(app), threaded=True, request_handler=_Silent)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    key = create_key(stage.database, tenant=TENANT, role=Role.OPERATOR).key
    try:
        yield Fleet(stage, f"http://127.0.0.1:{server.server_port}", key)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def database(sqlite_url: str, clock: FakeClock) -> Iterator[Database]:
    """What this folder is about does not depend on the kind of database."""
    connected = Database.connect(sqlite_url, clock=clock)
    yield connected
    connected.close()


@pytest.fixture
def stage(database: Database, clock: FakeClock) -> Stage:
    assert PROVIDER == "renders"  # as the notebook and the pages call it
    return a_stage(database, clock)


@pytest.fixture(autouse=True)
def _short_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homing.client.following._FIRST_REST_S", 0.01)
    monkeypatch.setattr("homing.client.following._LONGEST_REST_S", 0.01)
