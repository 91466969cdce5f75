"""The README's handlers do what the README says of them, on both databases."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from jobs.broker import RUN_HANDLER
from jobs.clock import FakeClock
from jobs.core.observations import JobError
from jobs.core.states import JobState
from jobs.handlers import Handler, HandlerRegistry
from jobs.services.handling import run_handler
from jobs.services.relay import relay
from jobs.services.runtime import Runtime
from jobs.storage.database import Database
from tests.factories import new_job, seen
from tests.fakes.broker import RecordingBroker
from tests.fakes.runtime import a_runtime

README = (Path(__file__).parents[2] / "README.md").read_text()


@pytest.fixture
def runtime(database: Database, monkeypatch: pytest.MonkeyPatch) -> Runtime:
    """A process that has loaded the README's plugin, and the table its reader has made."""
    registry = HandlerRegistry()
    monkeypatch.setattr("jobs.handlers.registry", registry)
    sample = re.search(r"^```python\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
    assert sample
    exec(compile(sample[1], "my_handlers.py", "exec"), {"__name__": "my_handlers"})
    with database.write() as tx:
        tx.execute(sa.text("CREATE TABLE films (job TEXT, output TEXT)"))
    return a_runtime(database, handlers=handlers_of(registry), broker=RecordingBroker())


def handlers_of(registry: HandlerRegistry) -> tuple[Handler, ...]:
    names = ("my_handlers.deliver", "my_handlers.alert")
    return tuple(handler for name in names if (handler := registry.find(name)))


def end(runtime: Runtime, state: JobState, **facts: Any) -> str:
    """A job that comes home, and whatever is to be called for it, each message twice."""
    job_id = str(new_job(runtime.database)["id"])
    with runtime.database.write() as tx:
        runtime.observer.observe(tx, job_id, seen(state, **facts))
    relay(runtime)
    assert isinstance(runtime.broker, RecordingBroker)
    for run_id, token in runtime.broker.take(RUN_HANDLER) * 2:
        run_handler(runtime, int(run_id), token)
    return job_id


def films(database: Database) -> list[Mapping[str, Any]]:
    with database.read() as tx:
        return list(tx.rows(sa.text("SELECT job, output FROM films")))


def test_a_film_is_written_once_however_often_the_message_comes(runtime: Runtime, clock: FakeClock) -> None:
    job_id = end(runtime, JobState.SUCCEEDED, output={"url": "https://example.com/film.gif"})

    (film,) = films(runtime.database)
    assert film["job"] == job_id
    assert json.loads(film["output"]) == {"url": "https://example.com/film.gif"}


def test_a_failure_is_told_and_writes_no_film(runtime: Runtime, capsys: pytest.CaptureFixture[str]) -> None:
    job_id = end(runtime, JobState.FAILED, error=JobError("nsfw", "refused"))

    assert capsys.readouterr().out == f"job.failed {job_id}\n"
    assert films(runtime.database) == []
