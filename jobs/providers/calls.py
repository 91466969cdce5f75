"""Requests to a provider that speaks JSON over HTTP, with each answer told apart from each fault.

Pieces for adapters to put together: what a submit, a read and a removal have in common at every such provider is
which of the port's errors an answer comes to. What the JSON means is the adapter's own affair.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from jobs.clock import Clock
from jobs.config.providers import ProviderConfig
from jobs.core.errors import Transient, UnknownOutcome
from jobs.core.observations import Json
from jobs.core.states import is_terminal
from jobs.net.http import Answer, HttpClient, NoAnswer
from jobs.providers import answers
from jobs.providers.port import Gone, Refused, Report

JSON_TYPE = "application/json"

# Each segment begins with a letter or digit, so none can be ``.`` or ``..``, which a path would fold away.
_NAMES = re.compile(r"[A-Za-z0-9][\w.:-]*(?:/[A-Za-z0-9][\w.:-]*)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Calls:
    """One account's connection.

    Attributes:
        url: The provider's address, without a slash at its end.
        headers: Sent with every request; the credential among them, so they are never shown.
    """

    client: HttpClient
    clock: Clock
    url: str
    headers: Mapping[str, str] = field(repr=False)

    def submit(
        self, path: str, *, body: bytes, content_type: str = JSON_TYPE, headers: Mapping[str, str] | None = None
    ) -> answers.Body:
        """Posts a submit, once, and returns the object it was answered with.

        Args:
            path: From the provider's address.
            body: As it goes on the wire.
            content_type: Of the body.
            headers: For this request only.

        Raises:
            Transient: It was definitely not accepted, for now.
            Refused: It was definitely not accepted, for good.
            UnknownOutcome: It may have been accepted.
        """
        sent = {**self.headers, "Content-Type": content_type, **(headers or {})}
        answer = self.client.request("POST", self.url + path, headers=sent, body=body, fresh=True)
        if not answer.is_success:
            raise answers.submit_fault(answer, now=self.clock.now())
        try:
            return answers.read_object(answer)
        except Transient as error:
            raise UnknownOutcome(error.detail) from error

    def read(self, path: str, *, params: Mapping[str, str] | None = None) -> answers.Body:
        """Reads an object.

        Raises:
            Transient: No usable answer.
            Gone: The provider does not know it (404, 410).
        """
        return self.object_of(self.ask("GET", path, params=params))

    def object_of(self, answer: Answer) -> answers.Body:
        """The object of an answer to a request that may be repeated.

        Raises:
            Transient: It is no usable answer.
            Gone: The provider does not know what was asked for (404, 410).
        """
        if not answer.is_success:
            raise answers.read_fault(answer, now=self.clock.now())
        return answers.read_object(answer)

    def remove(self, path: str) -> None:
        """Deletes an object; what the provider says beside "done" is not read.

        Raises:
            Transient: No usable answer.
            Gone: The provider does not know it (404, 410).
        """
        answer = self.ask("DELETE", path)
        if not answer.is_success:
            raise answers.read_fault(answer, now=self.clock.now())

    def ask(self, method: str, path: str, *, params: Mapping[str, str] | None = None) -> Answer:
        """Sends a request that may be repeated: an answer that did not come is only a delay.

        Raises:
            Transient: None came.
        """
        try:
            return self.client.request(method, self.url + path, headers=self.headers, params=params)
        except NoAnswer as error:
            raise Transient(error.detail) from error


def credential_of(config: ProviderConfig) -> str:
    """The account's ``api_token`` as text; empty where it has none, which the provider will refuse."""
    return config.api_token.get_secret_value() if config.api_token else ""


def dump(body: Json) -> bytes:
    """JSON for the wire."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def accepted_id(body: answers.Body, *names: str) -> str:
    """The id a submit was answered with, under the first of these names that holds one.

    Raises:
        UnknownOutcome: There is none, so a run may exist that we cannot name.
    """
    found = (answers.id_of(body.get(name)) for name in names)
    run = next((value for value in found if value is not None), None)
    if run is None:
        raise UnknownOutcome(f"accepted without an id: its answer has {', '.join(sorted(body)[:10]) or 'nothing'}")
    return run


def about(body: answers.Body, *, run: str, name: str = "id") -> answers.Body:
    """The same object, where it speaks of this very run.

    Raises:
        Transient: It speaks of another, or of none.
    """
    if body.get(name) != run:
        raise Transient(f"not an answer about run {run}")
    return body


def is_ended(report: Report) -> bool:
    """Whether a report says that the run is over."""
    return report.state is not None and is_terminal(report.state)


def path_segment(run: str) -> str:
    """A run's id as one segment of a path, which it cannot leave.

    Raises:
        Gone: No run can have such an id: its path would be folded away.
    """
    if run in (".", "..", ""):
        raise Gone("no run has such an id")
    return quote(run, safe="")


def name_path(value: Json) -> str | None:
    """A name of one or more segments, such as ``owner/name``, that may stand in a path as it is; else None."""
    return value if isinstance(value, str) and _NAMES.fullmatch(value) else None


def taken_endpoint(inputs: dict[str, Json], *, known: Mapping[str, object] | None = None, default: str) -> str:
    """Takes ``endpoint`` out of an input: which of a provider's submit routes the rest is for.

    Args:
        inputs: A copy of the job's input; ``endpoint`` is removed.
        known: The routes there are; None: any name of lower-case letters, digits, ``_`` and ``-``.
        default: Where the input names none.

    Raises:
        Refused: It names no route. Nothing was sent.
    """
    endpoint = inputs.pop("endpoint", default)
    if not isinstance(endpoint, str) or not _is_route(endpoint) or (known is not None and endpoint not in known):
        names = f"one of {', '.join(known)}" if known else "the name of a route"
        raise Refused(f"input.endpoint must be {names}", code="invalid_input")
    return endpoint


def _is_route(text: str) -> bool:
    return text.isascii() and text == text.lower() and text.replace("_", "").replace("-", "").isalnum()
