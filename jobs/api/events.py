"""``/v1/events``: everything that happened, in commit order, for consumers who lost some; ``/v1/event-types``."""

from __future__ import annotations

from typing import Annotated, Any

from apiflask import APIBlueprint
from flask import Response
from pydantic import ConfigDict, Field

from jobs.api.answers import answer
from jobs.api.auth import guard
from jobs.api.context import principal, runtime
from jobs.api.documents import Document, EventPage
from jobs.api.event_shapes import list_event_types
from jobs.api.fields import PageQuery, ShortText
from jobs.services.reading import EventFilter, read_events

blueprint = APIBlueprint("events", __name__, url_prefix="/v1", tag="Events")
guard(blueprint)

#: The most a position can be; more digits are a typing mistake.
_MAX_POSITION = 2**63 - 1


class EventsQuery(PageQuery):
    """Which events."""

    type: Annotated[ShortText, Field(description="`job.succeeded`, or `job.*`")] | None = None
    job: ShortText | None = None
    after: Annotated[int, Field(ge=0, le=_MAX_POSITION, description="Only events after this position")] = 0


class EventTypeDocument(Document):
    """A type of event; `schema` is the JSON Schema of the whole envelope."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    type: str
    description: str
    schema_version: int
    schema_: dict[str, Any] = Field(alias="schema")


class EventTypePage(Document):
    """Every type of event; always one page."""

    data: list[EventTypeDocument]
    next_cursor: None


@blueprint.get("/events")
@blueprint.input(EventsQuery, location="query", arg_name="query")
@blueprint.output(EventPage)
def list_events(query: EventsQuery) -> Response:
    """List events in the order of their positions."""
    wanted = EventFilter(type=query.type, job_id=query.job, after=query.after)
    return answer(read_events(runtime().database, principal(), wanted=wanted, cursor=query.cursor, limit=query.limit))


@blueprint.get("/event-types")
@blueprint.output(EventTypePage)
def list_types() -> Response:
    """List the types of events, each with the JSON Schema of what is sent for it."""
    return answer({"data": list(list_event_types()), "next_cursor": None})
