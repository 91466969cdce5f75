"""Every error as ``application/problem+json``: ours, the framework's, and the ones nobody foresaw.

Source: RFC 9457. ``type`` is ``urn:homing:problem:<slug>`` and stable; ``errors`` lists the fields at fault.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

import structlog
from apiflask.exceptions import HTTPError
from flask import Flask, Response, json
from werkzeug.exceptions import HTTPException

from jobs.core.errors import FieldFault, JobsError, MethodNotAllowed, Refusal, TooLarge, Unprocessable

MEDIA_TYPE = "application/problem+json"
_TYPE_PREFIX = "urn:homing:problem:"
#: When to come again where nobody named a time: an outage of the database is over, or lasts.
DEFAULT_RETRY = timedelta(seconds=2)
#: Where the framework finds what we have a name for: one type and title for a cause, whichever door it is met at.
_OURS: Mapping[int, type[Refusal]] = {each.status: each for each in (MethodNotAllowed, TooLarge)}
#: Headers of a framework's error that describe its own HTML body.
_BODY_HEADERS = frozenset({"content-type", "content-length"})

_log = structlog.get_logger(__name__)


def register_problems(app: Flask) -> None:
    """Answers every error of an app as a problem."""
    app.register_error_handler(JobsError, problem_of)
    app.register_error_handler(HTTPError, _of_validation)
    app.register_error_handler(HTTPException, _of_framework)
    app.register_error_handler(Exception, _of_surprise)


def problem(
    *,
    status: int,
    slug: str,
    title: str,
    detail: str,
    fields: Iterable[FieldFault] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """One problem document as a response."""
    document: dict[str, Any] = {
        "type": _TYPE_PREFIX + slug,
        "title": title,
        "status": status,
        "detail": detail,
    }
    faults = [{"field": fault.field, "message": fault.message} for fault in fields]
    if faults:
        document["errors"] = faults
    return Response(json.dumps(document), status=status, content_type=MEDIA_TYPE, headers=headers)


def problem_of(error: JobsError) -> Response:
    """The answer to an error of our own tree. What is our fault is logged in full and shown by its title only."""
    ours = error.status >= 500
    if ours:
        _log.warning("request failed", slug=error.slug, reason=error.detail)
    return problem(
        status=error.status,
        slug=error.slug,
        title=error.title,
        detail=error.title if ours else error.detail,
        fields=error.fields,
        headers=_headers(error),
    )


def _headers(error: JobsError) -> dict[str, str]:
    headers = {}
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if error.status == 503 or error.retry_after is not None:
        wait = error.retry_after or DEFAULT_RETRY
        headers["Retry-After"] = str(max(1, math.ceil(wait.total_seconds())))
    return headers


def _of_validation(error: HTTPError) -> Response:
    """APIFlask found the body, the query or a header not valid: ``{location: {field: [messages]}}``."""
    fields = [
        FieldFault("body" if name == "_schema" else name, message.removeprefix("Value error, "))  # pydantic's words
        for faults in error.detail.values()
        for name, messages in faults.items()
        for message in messages
    ]
    names = ", ".join(sorted({fault.field for fault in fields}))
    return problem_of(Unprocessable(f"not valid: {names}; `errors` says what to change", fields=fields))


def _of_framework(error: HTTPException) -> Response | HTTPException:
    if error.code is None or error.code < 400:
        return error  # a redirect, dressed as an exception
    ours = _OURS.get(error.code)
    kept = {name: value for name, value in error.get_headers() if name.lower() not in _BODY_HEADERS}
    return problem(
        status=error.code,
        slug=ours.slug if ours else re.sub(r"[^a-z]+", "-", error.name.lower()),
        title=ours.title if ours else error.name,
        detail=error.description or error.name,
        headers=kept,
    )


def _of_surprise(error: Exception) -> Response:
    """The edge of the process: the client gets a 500 without a word of the cause, the log gets all of it."""
    _log.error("unforeseen error in a request", exc_info=error)
    return problem(
        status=500,
        slug="internal",
        title="Something went wrong",
        detail="This is a fault of the server and has been logged; the request may not have had an effect.",
    )
