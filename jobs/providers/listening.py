"""Listening to a run: what streams of events have in common at every provider that has them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field

from jobs.clock import Clock
from jobs.config.providers import ProviderConfig
from jobs.core.addresses import AddressRefused, Network, read_url
from jobs.core.errors import Transient, UnknownOutcome
from jobs.core.observations import Json
from jobs.core.text import clean
from jobs.net.event_streams import Declined, EventStreams
from jobs.net.guarded import Credential
from jobs.net.http import Bounds, NoAnswer, NotSent
from jobs.net.sse import Message
from jobs.providers import answers
from jobs.providers.port import Gone, Refused

#: What an iterator of output raises where its provider's own word for the end did not come.
BROKE_OFF = "the stream ended before its provider said that it is whole"


@dataclass(frozen=True, slots=True)
class Listener:
    """One account, listened to.

    Attributes:
        url: The provider's address: its origin is trusted, and the only one that sees the credential.
        headers: The credential, and what else belongs to that origin only.
        gone: The statuses by which it says that there is nothing, or nothing any more, to be heard.
        allowed: Networks that a provider's link may lead to besides public addresses.
    """

    streams: EventStreams
    clock: Clock
    url: str
    headers: Mapping[str, str] = field(repr=False)
    gone: frozenset[int] = frozenset({404, 410})
    allowed: tuple[Network, ...] = ()

    @classmethod
    def of(cls, config: ProviderConfig, streams: EventStreams, *, clock: Clock, headers: Mapping[str, str]) -> Listener:
        """The account of an entry."""
        return cls(streams, clock, config.base_url.rstrip("/"), headers, allowed=config.private_addresses)

    def hear(self, url: str, *, after: str | None = None) -> Iterator[Message]:
        """Yields what is said at a URL, for as long as the connection lasts.

        Args:
            url: Of this account, or as an answer of its provider named it.
            after: Goes on after this message's id, where the provider can.

        Raises:
            Transient: No usable answer, or the stream broke, fell silent or grew too large.
            Gone: There is no such stream, or its link leads where nothing of a provider's can be.
        """
        headers = {} if after is None else {"Last-Event-ID": _in_utf8(after)}
        try:
            told = self.streams.listen(url, credential=self._credential(), headers=headers, allowed=self.allowed)
            with closing(told):
                yield from (message for message in told if message is not None)
        except Declined as declined:
            raise self._fault(declined) from declined
        except AddressRefused as refused:
            raise Gone(f"the stream's link was refused: {refused.detail}") from refused
        except NoAnswer as broken:
            raise Transient(broken.detail) from broken

    def submit(self, url: str, *, body: bytes) -> answers.Body:
        """Posts a submit that is answered with a stream, and returns its first message; the rest is not waited for.

        Raises:
            Transient: It was definitely not accepted, for now.
            Refused: It was definitely not accepted, for good.
            UnknownOutcome: It may have been accepted.
        """
        try:
            return self._first_of(url, body)
        except Declined as declined:
            if declined.answer.is_success:
                return _unstreamed(declined)
            raise answers.submit_fault(declined.answer, now=self.clock.now()) from declined
        except NotSent:
            raise
        except AddressRefused as refused:
            raise Refused(f"the provider's address was refused: {refused.detail}") from refused
        except Transient as broken:
            raise UnknownOutcome(broken.detail) from broken

    def _first_of(self, url: str, body: bytes) -> answers.Body:
        headers, within_s = {"Content-Type": "application/json"}, Bounds().total_s
        told = self.streams.listen(url, credential=self._credential(), headers=headers, body=body, within_s=within_s)
        with closing(told):
            for message in told:
                if message is not None:
                    return object_of(message)
        raise UnknownOutcome("the stream that answered the submit said nothing")

    def _credential(self) -> Credential:
        return Credential(read_url(self.url).origin, self.headers)

    def _fault(self, declined: Declined) -> Exception:
        if declined.answer.status in self.gone:
            return Gone(answers.describe(declined.answer, "answered"))
        if declined.answer.is_success:
            return Transient(answers.describe(declined.answer, "answered no stream"))
        return answers.read_fault(declined.answer, now=self.clock.now())


def _in_utf8(place: str) -> str:
    """A place as its header says it: in UTF-8, whose bytes the HTTP library takes as Latin-1.

    Source: WHATWG HTML, "Server-sent events", the Last-Event-ID header.
    """
    return place.encode("utf-8", "replace").decode("latin-1")


def _unstreamed(declined: Declined) -> answers.Body:
    """What a provider says that accepts a submit without a stream."""
    try:
        return answers.read_object(declined.answer)
    except Transient as error:
        raise UnknownOutcome(error.detail) from error


def json_of(message: Message) -> Json:
    """What a message says in JSON.

    Raises:
        Transient: It is none, so what it said is lost.
    """
    try:
        said: Json = json.loads(message.data)
    except (ValueError, RecursionError) as error:
        raise Transient(f"a message of the stream is no JSON: {error}"[:300]) from error
    return said


def object_of(message: Message) -> answers.Body:
    """The JSON object that a message is.

    Raises:
        Transient: It is none, so what it said is lost.
    """
    body = json_of(message)
    if not isinstance(body, dict):
        raise Transient("a message of the stream is no JSON object")
    return body


def text_of(value: object) -> str:
    """A piece of output as it may be stored; empty where it is none."""
    return clean(value) if isinstance(value, str) else ""
