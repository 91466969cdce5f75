"""``/v1/jobs/{id}/events``: a job's story as server-sent events, live.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Annotated, Any

from apiflask import APIBlueprint
from flask import Response, current_app, json, request
from pydantic import AwareDatetime, BaseModel, Field

from jobs.api.answers import answer
from jobs.api.auth import by_key, guard
from jobs.api.context import principal, runtime, tenant
from jobs.api.fields import Query
from jobs.core import instants
from jobs.services.keys import Principal, Role
from jobs.services.reading import read_job
from jobs.services.streams.followers import Follower, Streams
from jobs.services.streams.messages import Message
from jobs.services.streams.reading import News, open_stream
from jobs.services.streams.tokens import make_token, read_token

STREAMS = "homing.streams"
#: A stream of whatever length of silence shows within this time whether its reader is still there.
COMMENT_EVERY = timedelta(seconds=15)
#: A reader that cannot be told from a dead one (its machine froze, its packets vanish) holds a thread no longer.
MAX_LIFE = timedelta(hours=1)

_COMMENT = ":\n\n"
_MEDIA_TYPE = "text/event-stream"

_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"description": "The stream", "content": {_MEDIA_TYPE: {"schema": {"type": "string"}}}},
    204: {"description": "You know the end already; do not reconnect"},
    429: {"description": "This tenant has too many open streams"},
}

blueprint = APIBlueprint("streams", __name__, url_prefix="/v1/jobs", tag="Jobs")


class StreamQuery(Query):
    """For readers that can send no headers."""

    token: Annotated[str, Field(max_length=200, description="Of `stream-token`, instead of a key")] | None = None
    last_event_id: (
        Annotated[str, Field(max_length=200, description="Where to go on, if there is no `Last-Event-ID`")] | None
    ) = None


class StreamTokenDocument(BaseModel):
    """A token for `?token=`."""

    token: str
    expires_at: AwareDatetime = Field(description="Until then it opens streams; an open one goes on")


def _by_token_or_key() -> Principal:
    token = request.args.get("token")
    if token is None or request.method == "POST":
        return by_key()
    parts = runtime()
    job_id = str((request.view_args or {}).get("job_id"))
    return read_token(parts.database, parts.token_keys(), token, job_id=job_id, now=parts.clock.now())


guard(blueprint, identify=_by_token_or_key, changing=Role.VIEWER)


@blueprint.get("/<job_id>/events")
@blueprint.input(StreamQuery, location="query", arg_name="query")
@blueprint.doc(responses=_ANSWERS)
def follow(job_id: str, query: StreamQuery) -> Response:
    """Follow a job to its end, as server-sent events.

    First `snapshot`, without an id; then each event of the job once, `job.progress`, and `job.output.delta` from the
    output's first character on. `Last-Event-ID` resumes without a gap and without a repetition; one that is unknown
    begins anew, with `"reset": true` in the snapshot.
    A comment every 15 s; the stream ends after the terminal event, or after an hour, to be resumed.
    """
    streams: Streams = current_app.extensions[STREAMS]
    last_id = request.headers.get("Last-Event-ID") or query.last_event_id
    follower = streams.enter(tenant=tenant(), job_id=job_id)
    try:
        opening = open_stream(runtime().database, tenant=tenant(), job_id=job_id, last_id=last_id)
        if opening.is_over or request.method == "HEAD":
            streams.leave(follower)
            return _with_headers(Response(status=204 if opening.is_over else 200, mimetype=_MEDIA_TYPE))
        if not opening.is_whole:
            streams.follow(follower, opening.place)
    except BaseException:
        streams.leave(follower)
        raise
    frames = _frames(opening, follower, streams, monotonic=runtime().clock.monotonic)
    response = Response(frames, mimetype=_MEDIA_TYPE)
    response.call_on_close(lambda: streams.leave(follower))  # also where not a word of it was sent
    return _with_headers(response)


@blueprint.post("/<job_id>/stream-token")
@blueprint.output(StreamTokenDocument, status_code=201)
def create_stream_token(job_id: str) -> Response:
    """Make a token that opens this job's stream, and nothing else, for 15 minutes."""
    parts = runtime()
    read_job(parts.database, tenant=tenant(), job_id=job_id)
    made = make_token(parts.token_keys(), principal(), job_id=job_id, now=parts.clock.now())
    return answer({"token": made.token, "expires_at": instants.to_text(made.expires_at)}, 201)


def _with_headers(response: Response) -> Response:
    response.headers["X-Accel-Buffering"] = "no"  # nginx would hold the stream back until its buffer is full
    if "token" in request.args:
        # The page that reads it is another site's as a rule. The token is all it needs, no cookie goes along.
        response.headers["Access-Control-Allow-Origin"] = "*"
        response.headers["Referrer-Policy"] = "no-referrer"
    return response


def _frames(opening: News, follower: Follower, streams: Streams, *, monotonic: Callable[[], float]) -> Iterator[str]:
    """The stream's text; it blocks its thread until there is something to say."""
    ends_s = monotonic() + MAX_LIFE.total_seconds()
    try:
        yield "".join(_frame(message, follower.job_id) for message in opening.messages) or _COMMENT
        while not opening.is_whole and (rest_s := ends_s - monotonic()) > 0:
            try:
                message = follower.next(min(rest_s, COMMENT_EVERY.total_seconds()))
            except queue.Empty:
                yield _COMMENT
                continue
            if message is None:
                return
            yield _frame(message, follower.job_id)
            if message.is_last:
                return
    finally:
        streams.leave(follower)


def _frame(message: Message, job_id: str) -> str:
    lines: list[str] = [f"event: {message.type}", f"data: {_one_line(message.data)}"]
    if message.place is not None:
        lines.insert(0, f"id: {message.place.cursor.to_text(job_id)}")
    return "\n".join(lines) + "\n\n"


def _one_line(document: dict[str, Any]) -> str:
    return json.dumps(document)  # JSON escapes every line break inside a text
