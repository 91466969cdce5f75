"""A request as it came, and its answer: the two values both front doors (WSGI wrapper and Flask view) speak."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from typing import Any, Protocol

from jobs.core.errors import BadRequest, JobsError, SignatureError

PREFIX = "/webhooks/"
_PROBLEM_TYPE = "urn:homing:problem:"
_DEFAULT_RETRY = timedelta(seconds=2)
#: A token is of our making and has 32 characters; what is longer is none, and need not be kept whole.
_MAX_TOKEN_CHARS = 255
#: More digits than the length of any body has.
_MAX_LENGTH_DIGITS = 18
#: Headers to which WSGI gives variables of their own.
_OWN_VARIABLES = (("content-type", "CONTENT_TYPE"), ("content-length", "CONTENT_LENGTH"))
_ENCODER = json.JSONEncoder(separators=(",", ":"))


class Stream(Protocol):
    """Where a body is read from."""

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes; none at the end."""
        ...


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Attributes:
        headers: By lower-case name; values as latin-1 text, any byte possible.
        length: Of the body in bytes, as announced; None where it ends where the stream ends.
        query: As it was written, without its question mark.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    stream: Stream
    length: int | None
    query: str = ""

    @property
    def target(self) -> str:
        """Path and query, as called: part of what some senders sign."""
        return f"{self.path}?{self.query}" if self.query else self.path


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent back.

    Attributes:
        outcome: One word for counters and logs: ``accepted``, ``duplicate``, ``signature-refused`` …
    """

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    outcome: str = ""


def request_of(environ: Mapping[str, Any]) -> Request:
    """Reads a WSGI environment, touching nothing of the body.

    Raises:
        BadRequest: Content-Length is not a number of bytes.
    """
    return Request(
        method=environ["REQUEST_METHOD"],
        path=environ.get("PATH_INFO", ""),
        headers=_headers_of(environ),
        stream=environ["wsgi.input"],
        length=_length_of(environ),
        query=environ.get("QUERY_STRING", ""),
    )


def split_path(path: str) -> tuple[str, str | None] | None:
    """Provider and token of ``/webhooks/{provider}[/{token}]``, trailing slash or not; None for any other path."""
    parts = path.removeprefix(PREFIX).removesuffix("/").split("/")
    if not path.startswith(PREFIX) or len(parts) > 2 or not all(parts):
        return None
    return parts[0], parts[1][:_MAX_TOKEN_CHARS] if len(parts) == 2 else None


def acknowledgement(status: str, event_id: str) -> Answer:
    """The 200 that says what became of an event."""
    body = f'{{"status":"{status}","event":"{event_id}"}}'  # words of ours, without a need for escapes or an encoder
    return Answer(200, body.encode("ascii"), {"Content-Type": "application/json"}, status)


def problem_of(error: JobsError, headers: Mapping[str, str] | None = None) -> Answer:
    """An error as ``application/problem+json``.

    What is our own fault, and why a signature was refused, is for our log: the answer has the title only.

    Source: RFC 9457.
    """
    is_shown = error.status < 500 and not isinstance(error, SignatureError)
    document = {
        "type": _PROBLEM_TYPE + error.slug,
        "title": error.title,
        "status": error.status,
        "detail": error.detail if is_shown else error.title,
    }
    sent = {"Content-Type": "application/problem+json", **(headers or {})}
    if error.status == 503:
        wait = error.retry_after or _DEFAULT_RETRY
        sent["Retry-After"] = str(max(1, math.ceil(wait.total_seconds())))
    return Answer(error.status, _dump(document), sent, error.slug)


def _dump(document: Mapping[str, object]) -> bytes:
    return _ENCODER.encode(document).encode("ascii")


def _headers_of(environ: Mapping[str, Any]) -> dict[str, str]:
    headers = {name: value for key, value in environ.items() if (name := _header_name(key))}
    for name, key in _OWN_VARIABLES:
        if environ.get(key):
            headers[name] = environ[key]
    return headers


@lru_cache(maxsize=512)
def _header_name(key: str) -> str | None:
    """The header that a variable of the environment holds; None where it holds none."""
    return key[5:].replace("_", "-").lower() if key.startswith("HTTP_") else None


def _length_of(environ: Mapping[str, Any]) -> int | None:
    """The announced length; without one, None where the server marks the body's end, else 0 (as WSGI has it)."""
    text = environ.get("CONTENT_LENGTH")
    if text:
        if not (text.isascii() and text.isdigit()):
            raise BadRequest("Content-Length is not a number of bytes")
        return int(text[: _MAX_LENGTH_DIGITS + 1])
    is_chunked = "chunked" in environ.get("HTTP_TRANSFER_ENCODING", "").lower()
    return None if environ.get("wsgi.input_terminated") or is_chunked else 0
