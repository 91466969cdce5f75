from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from apiflask import APIFlask
from werkzeug.test import TestResponse

from homing.web import create_app
from jobs.api import streams as view
from jobs.clock import FakeClock
from jobs.core.observations import Progress
from jobs.core.states import JobState
from jobs.services.keys import Role, revoke_key
from jobs.services.reading import read_job
from jobs.services.runtime import Runtime
from jobs.services.streams.followers import Streams
from jobs.storage.database import Database
from jobs.storage.output import append_output, arm_stream, begin_text_anew, end_stream, rest_stream, take_stream
from tests.events import faults_of
from tests.factories import seen
from tests.integration.api.conftest import TENANT, Api, login
from tests.services.waiting import wait_until


@dataclass
class Event:
    """One block of a stream, as a browser reads it."""

    id: str | None
    type: str
    data: Any


def blocks(answer: TestResponse) -> Iterator[Event | None]:
    """The events of a stream; None for a comment."""
    assert (answer.status_code, answer.mimetype) == (200, "text/event-stream"), answer.data
    for chunk in answer.iter_encoded():
        for block in chunk.decode().removesuffix("\n\n").split("\n\n"):
            yield None if block.startswith(":") else parse(block)


def parse(block: str) -> Event:
    fields = dict(line.split(": ", 1) for line in block.split("\n"))
    return Event(fields.get("id"), fields["event"], json.loads(fields["data"]))


@pytest.fixture
def app(runtime: Runtime) -> APIFlask:
    return create_app(runtime)


@pytest.fixture
def streams(app: APIFlask) -> Streams:
    found: Streams = app.extensions[view.STREAMS]
    found._period_s = 0.02
    return found


@pytest.fixture
def api(app: APIFlask, streams: Streams, database: Database) -> Iterator[Api]:
    yield login(app.test_client(), database)
    wait_until(
        lambda: streams.occupied == 0 and all(thread.name != "stream-reader" for thread in threading.enumerate()),
        within_s=10,
        what="the end of every stream",
    )


def observe(runtime: Runtime, job_id: str, state: JobState, progress: float | None = None) -> None:
    with runtime.database.write() as tx:
        told = Progress(progress, "frames") if progress is not None else None
        runtime.observer.observe(tx, job_id, seen(state, progress=told))


def path_of(job_id: str) -> str:
    return f"/v1/jobs/{job_id}/events"


def test_a_stream_tells_a_job_from_its_snapshot_to_its_end(api: Api, runtime: Runtime) -> None:
    job = api.submit().json
    story = blocks(api.get(path_of(job["id"])))

    snapshot = next(story)
    observe(runtime, job["id"], JobState.RUNNING)
    accepted, started = next(story), next(story)
    observe(runtime, job["id"], JobState.RUNNING, 0.5)
    progress = next(story)
    observe(runtime, job["id"], JobState.SUCCEEDED)
    (end,) = story

    told = [snapshot, accepted, started, progress, end]
    assert snapshot == Event(None, "snapshot", {"job": job, "output_offset": 0})
    assert [event.type for event in told[1:] if event] == [
        "job.submitted",
        "job.started",
        "job.progress",
        "job.succeeded",
    ]
    assert len({event.id for event in told if event}) == 5
    assert all(event.data["type"] == event.type for event in told[1:] if event)
    assert end.data["data"]["job"]["state"] == "succeeded"
    assert set(end.data) == {"id", "type", "schema_version", "sequence", "occurred_at", "tenant", "data"}
    assert set(progress.data) == set(end.data)


def test_output_is_told_while_it_is_made_from_wherever_a_reader_is(api: Api, runtime: Runtime) -> None:
    job = api.submit().json
    observe(runtime, job["id"], JobState.RUNNING)
    tell(runtime, job["id"], "The pigeon ")
    story = blocks(api.get(path_of(job["id"])))

    snapshot, first = next(story), next(story)
    tell(runtime, job["id"], "flies ")
    second = next(story)
    story.close()  # type: ignore[attr-defined] # a generator
    tell(runtime, job["id"], "home.")
    rest = blocks(api.get(path_of(job["id"]), headers={"Last-Event-ID": second.id}))
    third = next(rest)
    tell(runtime, job["id"], "Anew.", anew=True)
    reset, fourth = next(rest), next(rest)
    tell(runtime, job["id"], "", is_end=True)
    observe(runtime, job["id"], JobState.SUCCEEDED)
    (end,) = rest

    assert snapshot.data["output_offset"] == 11
    told = [first, second, third, reset, fourth]
    assert [(event.type, event.data["data"].get("offset"), event.data["data"].get("text")) for event in told] == [
        ("job.output.delta", 0, "The pigeon "),
        ("job.output.delta", 11, "flies "),
        ("job.output.delta", 17, "home."),
        ("job.output.reset", None, None),
        ("job.output.delta", 0, "Anew."),
    ]
    assert {event.data["data"]["attempt"] for event in told} == {1}
    assert [fault for event in told for fault in faults_of(event.data)] == []
    assert end.type == "job.succeeded"
    assert api.get(path_of(job["id"]), headers={"Last-Event-ID": end.id}).status_code == 204


def test_long_text_comes_in_large_pieces_and_the_end_after_all_of_it(api: Api, runtime: Runtime) -> None:
    job = api.submit().json
    observe(runtime, job["id"], JobState.RUNNING)
    for _ in range(30):
        tell(runtime, job["id"], "0123456789" * 1000)
    tell(runtime, job["id"], "", is_end=True)
    observe(runtime, job["id"], JobState.SUCCEEDED)

    _snapshot, *deltas, end = blocks(api.get(path_of(job["id"])))

    assert "".join(event.data["data"]["text"] for event in deltas) == "0123456789" * 30_000
    assert len(deltas) < 15
    assert end.type == "job.succeeded"


def tell(runtime: Runtime, job_id: str, text: str, *, anew: bool = False, is_end: bool = False) -> None:
    """What a worker does that listens to the job's run."""
    with runtime.database.write() as tx:
        arm_stream(tx, job_id=job_id, provider="renders", attempt=1)
        taken = take_stream(tx, job_id, held=None, until=tx.now + timedelta(seconds=15))
        assert taken is not None
        stream = begin_text_anew(tx, taken) if anew else taken
        assert stream is not None
        if is_end:
            end_stream(tx, stream, "complete")
            return
        assert append_output(tx, stream, text, {})
        rest_stream(tx, {**stream, "length": stream["length"] + len(text)}, next_read_at=tx.now, tries=0)


def test_the_envelopes_are_the_events_of_the_list(api: Api, runtime: Runtime) -> None:
    from jobs.services.relay import relay

    job_id = api.submit().json["id"]
    observe(runtime, job_id, JobState.SUCCEEDED)
    relay(runtime)

    *_, end = blocks(api.get(path_of(job_id)))

    listed = api.get(f"/v1/events?job={job_id}&type=job.succeeded").json["data"][0]
    del listed["position"]
    assert end.data == listed


def test_last_event_id_resumes_where_the_reader_was(api: Api, runtime: Runtime) -> None:
    job_id = api.submit().json["id"]
    story = api.get(path_of(job_id))
    following = blocks(story)
    next(following)
    observe(runtime, job_id, JobState.RUNNING)
    first = next(following)
    story.close()
    observe(runtime, job_id, JobState.SUCCEEDED)

    rest = list(blocks(api.get(path_of(job_id), headers={"Last-Event-ID": first.id})))
    same = list(blocks(api.get(f"{path_of(job_id)}?last_event_id={first.id}")))

    assert [event.type for event in rest] == ["job.started", "job.succeeded"]
    assert rest == same


def test_whoever_knows_the_end_is_told_not_to_come_again(api: Api, runtime: Runtime) -> None:
    job_id = api.submit().json["id"]
    observe(runtime, job_id, JobState.FAILED)
    snapshot, end = blocks(api.get(path_of(job_id)))

    again = api.get(path_of(job_id), headers={"Last-Event-ID": end.id})

    assert (snapshot.type, end.type) == ("snapshot", "job.failed")
    assert (again.status_code, again.data) == (204, b"")


def test_junk_as_a_last_event_id_begins_anew(api: Api, runtime: Runtime) -> None:
    job_id = api.submit().json["id"]
    observe(runtime, job_id, JobState.CANCELED)

    snapshot, end = blocks(api.get(path_of(job_id), headers={"Last-Event-ID": "\xff junk"}))

    assert (snapshot.type, snapshot.data["reset"], end.type) == ("snapshot", True, "job.canceled")


def test_a_silent_stream_says_that_it_lives(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "COMMENT_EVERY", timedelta(milliseconds=20))
    answer = api.get(path_of(api.submit().json["id"]))
    story = blocks(answer)

    assert next(story).type == "snapshot"
    assert [next(story), next(story)] == [None, None]
    answer.close()


def test_a_stream_has_a_longest_life(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "MAX_LIFE", timedelta(0))
    job_id = api.submit().json["id"]

    assert [event.type for event in blocks(api.get(path_of(job_id)))] == ["snapshot"]


def test_a_reader_that_leaves_before_the_first_word_gives_its_seat_back(api: Api, streams: Streams) -> None:
    answer = api.get(path_of(api.submit().json["id"]))
    assert streams.occupied == 1

    answer.close()

    assert streams.occupied == 0


def test_f63_a_job_that_ends_while_its_stream_is_opened_is_told(
    api: Api, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F63: the pause point is after the stream has read the job's state."""
    job_id = api.submit().json["id"]
    read = view.open_stream

    def read_then_finish(*args: Any, **options: Any) -> Any:
        opening = read(*args, **options)
        observe(runtime, job_id, JobState.SUCCEEDED)
        return opening

    monkeypatch.setattr(view, "open_stream", read_then_finish)

    assert [event.type for event in blocks(api.get(path_of(job_id)))][-1] == "job.succeeded"


def test_f63_a_job_that_ends_while_a_long_poll_begins_is_answered(
    api: Api, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F63 for long polls: the pause point is after the request has read the job's version."""
    job = api.submit().json
    reads: list[str] = []

    def read_then_finish(*args: Any, **options: Any) -> Any:
        found = read_job(*args, **options)
        if not reads:
            observe(runtime, job["id"], JobState.SUCCEEDED)
        reads.append(job["id"])
        return found

    monkeypatch.setattr("jobs.api.jobs.read_job", read_then_finish)

    answer = api.get(f"/v1/jobs/{job['id']}?wait=30&since={job['version']}")

    assert answer.json["state"] == "succeeded"


def test_streams_beyond_a_tenants_share_are_429(api: Api, streams: Streams) -> None:
    job_id = api.submit().json["id"]
    streams._seats_per_tenant = 2
    opened = [api.get(path_of(job_id)), api.get(path_of(job_id))]

    refused = api.get(path_of(job_id))

    assert (refused.status_code, refused.json["type"]) == (429, "urn:homing:problem:too-many-streams")
    assert refused.headers["Retry-After"] == "10"
    for answer in opened:
        answer.close()


def test_streams_beyond_the_seats_are_503(api: Api, streams: Streams) -> None:
    streams._seats = 0

    refused = api.get(path_of(api.submit().json["id"]))

    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "10")


def test_another_tenants_stream_is_not_there(app: APIFlask, api: Api, database: Database) -> None:
    job_id = api.submit().json["id"]
    stranger = login(app.test_client(), database, tenant="globex")

    assert stranger.get(path_of(job_id)).status_code == 404
    assert stranger.post(f"/v1/jobs/{job_id}/stream-token").status_code == 404
    assert app.test_client().get(path_of(job_id)).status_code == 401


def a_token(app: APIFlask, database: Database, job_id: str) -> tuple[Api, str]:
    viewer = login(app.test_client(), database, tenant=TENANT, role=Role.VIEWER)
    answer = viewer.post(f"/v1/jobs/{job_id}/stream-token")
    assert answer.status_code == 201
    return viewer, answer.json["token"]


def test_a_token_opens_the_stream_of_its_job_only(
    app: APIFlask, api: Api, database: Database, runtime: Runtime
) -> None:
    job_id, other = api.submit().json["id"], api.submit().json["id"]
    observe(runtime, job_id, JobState.SUCCEEDED)
    _, token = a_token(app, database, job_id)
    nobody = app.test_client()

    opened = nobody.get(f"{path_of(job_id)}?token={token}")

    assert [event.type for event in blocks(opened)] == ["snapshot", "job.succeeded"]
    assert opened.headers["Access-Control-Allow-Origin"] == "*"
    assert nobody.get(f"{path_of(other)}?token={token}").status_code == 401
    assert nobody.get(f"/v1/jobs/{job_id}?token={token}").status_code == 401
    assert nobody.post(f"/v1/jobs/{job_id}/stream-token?token={token}").status_code == 401


@pytest.mark.parametrize("forge", [lambda t: t[:-1] + ("A" if t[-1] != "A" else "B"), lambda t: "9" + t, lambda t: ""])
def test_a_forged_token_opens_nothing(app: APIFlask, api: Api, database: Database, forge: Any) -> None:
    job_id = api.submit().json["id"]
    _, token = a_token(app, database, job_id)

    assert app.test_client().get(path_of(job_id), query_string={"token": forge(token)}).status_code == 401


def test_a_token_expires_and_falls_with_its_key(
    app: APIFlask, api: Api, database: Database, clock: FakeClock, runtime: Runtime
) -> None:
    job_id = api.submit().json["id"]
    observe(runtime, job_id, JobState.SUCCEEDED)
    viewer, token = a_token(app, database, job_id)
    _, other_token = a_token(app, database, job_id)
    url = f"{path_of(job_id)}?token="
    nobody = app.test_client()

    revoke_key(database, viewer.key_id)
    assert nobody.get(url + token).status_code == 401
    assert nobody.get(url + other_token).status_code == 200
    clock.advance(timedelta(minutes=15))
    assert nobody.get(url + other_token).status_code == 401
