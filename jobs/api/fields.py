"""Kinds of values in requests: how each is read, and how the OpenAPI document describes it."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from jobs.core import instants
from jobs.core.durations import parse_duration
from jobs.services.creation import MAX_SPAN
from jobs.services.paging import DEFAULT_LIMIT, MAX_LIMIT

#: An offset's "+" in a query string means a blank to whoever decodes it.
_LOST_PLUS = re.compile(r" (\d\d:?\d\d)$")


def _bounded(span: timedelta) -> timedelta:
    if not timedelta(0) < span <= MAX_SPAN:
        raise ValueError(f"must be longer than 0 and at most {MAX_SPAN.days}d")
    return span


def _instant(value: object) -> datetime:
    if not isinstance(value, str):
        raise ValueError("must be an RFC 3339 time, such as 2026-01-01T00:00:00Z")
    return instants.from_text(_LOST_PLUS.sub(r"+\1", value))


Span: TypeAlias = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    AfterValidator(_bounded),
    WithJsonSchema({"type": "string", "examples": ["90s", "1h 30m"], "description": "Number with ms, s, m, h or d"}),
]
Instant: TypeAlias = Annotated[
    datetime, BeforeValidator(_instant), WithJsonSchema({"type": "string", "format": "date-time"})
]
RunId: TypeAlias = Annotated[str, Field(min_length=1, max_length=255)]
Reason: TypeAlias = Annotated[str, Field(min_length=1, max_length=500)]
ShortText: TypeAlias = Annotated[str, Field(max_length=255)]


class Body(BaseModel):
    """A request body: what it does not know is an error, not a surprise."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class Query(BaseModel):
    """A query string: an unknown parameter is an error, because a filter that is ignored shows too much."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class PageQuery(Query):
    """What every list takes."""

    cursor: Annotated[str, Field(max_length=200, description="`next_cursor` of the page before")] | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT, description="Rows on a page")] = DEFAULT_LIMIT
