"""``/v1/inbox``: what providers sent, byte for byte, and what became of it."""

from __future__ import annotations

from typing import Annotated, Any

from apiflask import APIBlueprint
from flask import Response
from pydantic import AwareDatetime, Field

from jobs.api.answers import answer
from jobs.api.auth import guard
from jobs.api.context import principal, runtime
from jobs.api.documents import Document, Noop
from jobs.api.fields import PageQuery, ShortText
from webhooks.incoming.inbox.entries import EventFilter, read_event, read_events, reprocess
from webhooks.incoming.schema import InboxStatus

#: Where an application keeps its receiver's parts.
INTAKE = "homing.intake"

blueprint = APIBlueprint("inbox", __name__, url_prefix="/v1/inbox", tag="Inbox")
guard(blueprint)

_NOOP: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "There was nothing to do; `why` says why",
        "content": {"application/json": {"schema": Noop.model_json_schema()}},
    }
}


class InboxEvent(Document):
    """An authentic event of a provider. `raw` is the body on the wire, in base64; `secret_index` 0 is the newest."""

    id: str
    provider: str
    status: InboxStatus
    delivery_id: str | None
    provider_job_id: str | None
    job: str | None
    received_at: AwareDatetime
    processed_at: AwareDatetime | None
    raw: str | None = Field(description="null in a list where the body is larger than 64 KiB")
    headers: dict[str, str]
    digest: str = Field(description="SHA-256 of the body, in hex")
    scheme: str
    secret_index: int
    reason: str | None
    duplicates: int
    tries: int


class InboxPage(Document):
    """Events, newest first."""

    data: list[InboxEvent]
    next_cursor: str | None


class EventsQuery(PageQuery):
    """Which events."""

    status: InboxStatus | None = None
    provider: ShortText | None = None
    job: ShortText | None = None
    delivery_id: Annotated[ShortText, Field(description="The sender's id of the delivery")] | None = None


@blueprint.get("")
@blueprint.input(EventsQuery, location="query", arg_name="query")
@blueprint.output(InboxPage)
def list_events(query: EventsQuery) -> Response:
    """List received events, newest first; also parked, ignored and quarantined ones."""
    wanted = EventFilter(query.status, query.provider, query.job, query.delivery_id)
    return answer(read_events(runtime().database, principal(), wanted=wanted, cursor=query.cursor, limit=query.limit))


@blueprint.get("/<event_id>")
@blueprint.output(InboxEvent)
def show(event_id: str) -> Response:
    """Read a received event, with its raw bytes and headers."""
    return answer(read_event(runtime().database, principal(), event_id))


@blueprint.post("/<event_id>/reprocess")
@blueprint.output(InboxEvent, status_code=202, description="It is due again")
@blueprint.doc(responses=_NOOP)
def reprocess_event(event_id: str) -> Response:
    """Have an event that came to nothing looked at again; what its job has taken in is left alone."""
    done = reprocess(runtime(), principal(), event_id)
    if done.why_not is not None:
        return answer({"status": "noop", "why": done.why_not})
    return answer(done.event, 202)
