"""The API as commands use it. Answers are documents; a problem is raised with the server's own words."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import timedelta
from typing import Any, BinaryIO, TypeAlias
from urllib.parse import quote

import requests
import urllib3
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from homing.client.address import Address
from homing.client.errors import Busy, NoStream, Problem, Unreachable
from homing.screen import Document
from jobs.core.errors import FieldFault, Transient
from jobs.net.sse import Message, messages

Params: TypeAlias = Mapping[str, str | int | None]

READ_S = 15
_CONNECT_S = 5
#: Of a request that may be sent again: a read, or one with an Idempotency-Key.
_TRIES = 4
_FIRST_WAIT_S = 0.25
#: Longer is not slept through inside of a call, whatever `Retry-After` asks for: the caller decides.
_LONGEST_WAIT_S = 5.0
_CHUNK_BYTES = 256 * 1024
_STREAM = "text/event-stream"
#: A stream that is not there now, for reasons of its place or of its number: other ways stand open.
_NO_STREAM = (404, 405, 406, 429, 500, 501, 502, 503, 504)


class ApiClient:
    """One fleet's API.

    Args:
        address: whom to ask, and as whom.
    """

    def __init__(self, address: Address) -> None:
        """See the class."""
        self._address = address
        self._session = requests.Session()
        # A callable, because `requests` would let a netrc file replace a plain header.
        self._session.auth = self._authorize
        self._pause = threading.Event()

    def get(self, path: str, params: Params | None = None, *, read_s: float = READ_S, tries: int = _TRIES) -> Document:
        """Read a document; again where that failed."""
        return self._retrying(tries)(self._ask, "GET", path, params=params, read_s=read_s)

    def post(self, path: str, body: Document | None = None) -> Document:
        """Ask for a change. Sent once: a lost answer may be that of a change that happened."""
        return self._ask("POST", path, json=body or {})

    def submit(self, body: Document, *, key: str) -> Document:
        """Send a job. A lost answer is asked for again: with the same key there is still one job."""
        return self._retrying(_TRIES)(self._ask, "POST", "/v1/jobs", json=body, headers={"Idempotency-Key": key})

    def begin_redrive(self, body: Document, *, key: str) -> Document:
        """Redrive every open dead letter that fits. A lost answer is asked for again, as for a job."""
        headers = {"Idempotency-Key": key}
        return self._retrying(_TRIES)(self._ask, "POST", "/v1/dead-letters/redrive", json=body, headers=headers)

    def pages(self, path: str, params: Params | None = None) -> Iterator[Document]:
        """Yield every entry of a list, page by page."""
        cursor: str | None = None
        while True:
            page = self.get(path, {**(params or {}), "cursor": cursor})
            yield from page["data"]
            cursor = page.get("next_cursor")
            if cursor is None:
                return

    def stream(self, path: str, *, last_id: str | None, silence_s: float) -> Iterator[Message | None]:
        """Yield the messages of a stream until it ends, and None for each sign of life in between.

        Args:
            path: of the stream.
            last_id: resume after this message.
            silence_s: no byte for so long means that nobody is there.

        Raises:
            NoStream: none is served there now.
            Unreachable: no answer, or none any more.
        """
        headers = {"Accept": _STREAM, "Accept-Encoding": "identity", "Cache-Control": "no-store"}
        if last_id is not None:
            headers["Last-Event-ID"] = last_id
        answer = self._send("GET", path, headers=headers, stream=True, read_s=silence_s)
        with closing(answer):
            if answer.status_code == 204:
                return
            if answer.status_code in _NO_STREAM:
                raise NoStream(f"{path} answered {answer.status_code}", retry_after=_retry_after(answer))
            if not answer.headers.get("Content-Type", "").startswith(_STREAM):
                _document(answer)  # raises what the API refused
                raise NoStream(f"{path} answered something that is no stream")
            yield from messages(self._chunks(answer))

    def download(self, path: str, *, into: BinaryIO) -> None:
        """Write a file's bytes; from the start again where that failed."""
        self._retrying(_TRIES)(self._copy, path, into)

    def close(self) -> None:
        """Close its connections."""
        self._session.close()

    def _copy(self, path: str, into: BinaryIO) -> None:
        into.seek(0)
        into.truncate()
        headers = {"Accept-Encoding": "identity"}
        with closing(self._send("GET", path, headers=headers, stream=True)) as answer:
            if not answer.ok:
                _document(answer)  # raises what the API refused
            try:
                into.writelines(answer.iter_content(_CHUNK_BYTES))
            except requests.RequestException as error:
                raise Unreachable(f"the file broke off ({type(error).__name__})") from None

    def _chunks(self, answer: requests.Response) -> Iterator[bytes]:
        """Bytes as they come. `iter_content` would wait for its chunk to be full."""
        try:
            while chunk := answer.raw.read1():
                yield chunk
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Unreachable(f"the stream broke off ({type(error).__name__})") from None

    def _ask(self, method: str, path: str, **options: Any) -> Document:
        return _document(self._send(method, path, **options))

    def _send(self, method: str, path: str, *, read_s: float = READ_S, **options: Any) -> requests.Response:
        url = self._address.url + path
        try:
            return self._session.request(method, url, timeout=(_CONNECT_S, read_s), allow_redirects=False, **options)
        except requests.RequestException as error:
            raise Unreachable(
                f"{self._address.url} does not answer ({type(error).__name__}). Is the fleet up? "
                "`homing doctor` looks at it from the inside"
            ) from None

    def _retrying(self, tries: int) -> Retrying:
        return Retrying(
            retry=retry_if_exception_type(Transient),
            stop=stop_after_attempt(tries),
            wait=_wait_s,
            sleep=self._rest,
            reraise=True,
        )

    def _rest(self, wait_s: float) -> None:
        self._pause.wait(wait_s)

    def _authorize(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._address.api_key}"
        return request


def job_path(job_id: str, *further: str) -> str:
    """Return the path of a job, or of something below it."""
    return "/".join(["/v1/jobs", quote(job_id, safe=""), *further])


_spread = wait_random_exponential(multiplier=_FIRST_WAIT_S, max=_LONGEST_WAIT_S)


def _wait_s(state: RetryCallState) -> float:
    """A growing, jittered wait, and no shorter than the API asked for."""
    error = None if state.outcome is None else state.outcome.exception()
    asked = error.retry_after if isinstance(error, Transient) else None
    asked_s = 0.0 if asked is None else min(asked.total_seconds(), _LONGEST_WAIT_S)
    return max(_spread(state), asked_s)


def _document(answer: requests.Response) -> Document:
    try:
        document = answer.json()
    except (ValueError, requests.RequestException):
        document = None
    if answer.ok and isinstance(document, dict):
        return document
    raise _problem(answer, document if isinstance(document, dict) else {})


def _problem(answer: requests.Response, document: dict[str, Any]) -> Problem | Busy:
    title = str(document.get("title") or f"the API answered {answer.status_code}")
    detail = str(document.get("detail") or title)
    if answer.status_code == 401:
        detail += "; set HOMING_API_KEY to a live key, `homing keys create` makes one"
    slug = str(document.get("type") or "").rpartition(":")[2] or None
    if answer.status_code >= 500 or answer.status_code == 429:
        return Busy(detail, slug=slug, retry_after=_retry_after(answer))
    problem = Problem(detail, slug=slug, fields=list(_faults(document)))
    problem.title, problem.http_status = title, answer.status_code
    return problem


def _faults(document: Mapping[str, Any]) -> Iterator[FieldFault]:
    for fault in document.get("errors") or ():
        if isinstance(fault, dict):
            yield FieldFault(str(fault.get("field", "")), str(fault.get("message", "")))


def _retry_after(answer: requests.Response) -> timedelta | None:
    text = answer.headers.get("Retry-After", "")
    return timedelta(seconds=int(text)) if text.isascii() and text.isdigit() and len(text) < 7 else None
