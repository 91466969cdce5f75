"""``/v1/events``: everything that happened, in commit order, for consumers who lost some."""

from __future__ import annotations

from typing import Annotated

from apiflask import APIBlueprint
from flask import Response
from pydantic import Field

from jobs.api.answers import answer
from jobs.api.auth import guard
from jobs.api.context import principal, runtime
from jobs.api.documents import EventPage
from jobs.api.fields import PageQuery, ShortText
from jobs.services.reading import EventFilter, read_events

blueprint = APIBlueprint("events", __name__, url_prefix="/v1/events", tag="Events")
guard(blueprint)

#: The most a position can be; more digits are a typing mistake.
_MAX_POSITION = 2**63 - 1


class EventsQuery(PageQuery):
    """Which events."""

    type: Annotated[ShortText, Field(description="`job.succeeded`, or `job.*`")] | None = None
    job: ShortText | None = None
    after: Annotated[int, Field(ge=0, le=_MAX_POSITION, description="Only events after this position")] = 0


@blueprint.get("")
@blueprint.input(EventsQuery, location="query", arg_name="query")
@blueprint.output(EventPage)
def list_events(query: EventsQuery) -> Response:
    """List events in the order of their positions."""
    wanted = EventFilter(type=query.type, job_id=query.job, after=query.after)
    return answer(read_events(runtime().database, principal(), wanted=wanted, cursor=query.cursor, limit=query.limit))
