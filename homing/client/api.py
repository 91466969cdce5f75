"""The API as commands use it. Answers are documents; a problem is raised with the server's own words."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias
from urllib.parse import quote

import requests

from homing.client.address import Address
from homing.screen import Document
from jobs.clock import Clock, SystemClock
from jobs.core.errors import FieldFault, Permanent, Transient
from jobs.core.states import TERMINAL

Params: TypeAlias = Mapping[str, str | int | None]

#: How long one request may wait for a change; the server's own limit is no shorter.
LONG_POLL_S = 30
_CONNECT_S = 5
_READ_S = 15
#: The server answers waiters at once when too many wait. Nobody asks faster than this then.
_BETWEEN_POLLS_S = 1.0
#: How long somebody who follows a job keeps asking a fleet that does not answer: a restart takes seconds.
_PATIENCE_S = 60


class Unreachable(Transient):
    """No answer came from the API."""

    title = "The API does not answer"
    slug = "unreachable"


class Busy(Transient):
    """The API answered that it cannot just now (5xx, 429)."""

    title = "The API cannot do this now"
    slug = "busy"


class Problem(Permanent):
    """The API refused, and said why."""

    title = "The API refused this"
    slug = "refused"


class ApiClient:
    """One fleet's API.

    Args:
        address: whom to ask, and as whom.
        clock: measures patience.
    """

    def __init__(self, address: Address, *, clock: Clock | None = None) -> None:
        """See the class."""
        self._address = address
        self._clock = clock or SystemClock()
        self._session = requests.Session()
        # A callable, because `requests` would let a netrc file replace a plain header.
        self._session.auth = self._authorize
        self._pause = threading.Event()

    def get(self, path: str, params: Params | None = None, *, read_s: float = _READ_S) -> Document:
        """Read a document."""
        return self._ask("GET", path, params=params, read_s=read_s)

    def post(self, path: str, body: Document | None = None, *, headers: Mapping[str, str] | None = None) -> Document:
        """Ask for a change."""
        return self._ask("POST", path, body=body or {}, headers=headers)

    def submit(self, body: Document, *, key: str) -> Document:
        """Send a job. A lost answer is asked for again: with the same key there is still one job."""
        try:
            return self.post("/v1/jobs", body, headers={"Idempotency-Key": key})
        except Transient:
            self._pause.wait(_BETWEEN_POLLS_S)
            return self.post("/v1/jobs", body, headers={"Idempotency-Key": key})

    def pages(self, path: str, params: Params | None = None) -> Iterator[Document]:
        """Yield every entry of a list, page by page."""
        cursor: str | None = None
        while True:
            page = self.get(path, {**(params or {}), "cursor": cursor})
            yield from page["data"]
            cursor = page.get("next_cursor")
            if cursor is None:
                return

    def changes(self, job_id: str, *, within_s: float | None = None) -> Iterator[Document]:
        """Yield a job now, after every change, and for the last time when it has ended or the time is over."""
        until = None if within_s is None else self._clock.monotonic() + within_s
        job = self.get(job_path(job_id))
        yield job
        while job["state"] not in TERMINAL:
            left_s = LONG_POLL_S if until is None else until - self._clock.monotonic()
            if left_s <= 0:
                return
            changed = self._next_change(job, wait_s=max(1, min(LONG_POLL_S, int(left_s))))
            if changed["version"] != job["version"]:
                job = changed
                yield job

    def close(self) -> None:
        """Close its connections."""
        self._session.close()

    def _next_change(self, job: Document, *, wait_s: int) -> Document:
        """The job after a change, or unchanged after a while. Outlives a restart of the fleet."""
        began, give_up_at = self._clock.monotonic(), self._clock.monotonic() + _PATIENCE_S
        params = {"wait": wait_s, "since": job["version"]}
        while True:
            try:
                changed = self.get(job_path(job["id"]), params, read_s=wait_s + _READ_S)
            except Transient:
                if self._clock.monotonic() > give_up_at:
                    raise
                self._pause.wait(_BETWEEN_POLLS_S)
                continue
            if changed["version"] == job["version"] and self._clock.monotonic() - began < _BETWEEN_POLLS_S:
                self._pause.wait(_BETWEEN_POLLS_S)
            return changed

    def _ask(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: Document | None = None,
        headers: Mapping[str, str] | None = None,
        read_s: float = _READ_S,
    ) -> Document:
        url = self._address.url + path
        try:
            answer = self._session.request(
                method,
                url,
                params=params,
                json=body,
                headers=headers,
                timeout=(_CONNECT_S, read_s),
                allow_redirects=False,
            )
        except requests.RequestException as error:
            raise Unreachable(
                f"{self._address.url} does not answer ({type(error).__name__}). Is the fleet up? "
                "`homing doctor` looks at it from the inside"
            ) from None
        return _document(answer)

    def _authorize(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._address.api_key}"
        return request


def job_path(job_id: str, *further: str) -> str:
    """Return the path of a job, or of something below it."""
    return "/".join(["/v1/jobs", quote(job_id, safe=""), *further])


def _document(answer: requests.Response) -> Document:
    try:
        document = answer.json()
    except ValueError:
        document = None
    if answer.ok and isinstance(document, dict):
        return document
    raise _problem(answer, document if isinstance(document, dict) else {})


def _problem(answer: requests.Response, document: dict[str, Any]) -> Problem | Busy:
    title = document.get("title") or f"the API answered {answer.status_code}"
    detail = str(document.get("detail") or title)
    if answer.status_code == 401:
        detail += "; set HOMING_API_KEY to a live key, `homing keys create` makes one"
    slug = str(document.get("type") or "").rpartition(":")[2] or None
    faults = [
        FieldFault(str(fault.get("field", "")), str(fault.get("message", "")))
        for fault in document.get("errors") or ()
        if isinstance(fault, dict)
    ]
    kind = Busy if answer.status_code >= 500 or answer.status_code == 429 else Problem
    return kind(detail, slug=slug, fields=faults)
