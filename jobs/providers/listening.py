"""Listening to a run: what streams of events have in common at every provider that has them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field

from jobs.clock import Clock
from jobs.config.providers import ProviderConfig
from jobs.core.addresses import AddressRefused, Network, read_url
from jobs.core.errors import Transient
from jobs.core.text import clean
from jobs.net.event_streams import Declined, EventStreams
from jobs.net.guarded import Credential
from jobs.net.http import NoAnswer
from jobs.net.sse import Message
from jobs.providers import answers
from jobs.providers.port import Gone

#: What an iterator of output raises where its provider's own word for the end did not come.
BROKE_OFF = "the stream ended before its provider said that it is whole"


@dataclass(frozen=True, slots=True)
class Listener:
    """One account, listened to.

    Attributes:
        url: The provider's address: its origin is trusted, and the only one that sees the credential.
        headers: The credential, and what else belongs to that origin only.
        allowed: Networks that a provider's link may lead to besides public addresses.
    """

    streams: EventStreams
    clock: Clock
    url: str
    headers: Mapping[str, str] = field(repr=False)
    allowed: tuple[Network, ...] = ()

    @classmethod
    def of(cls, config: ProviderConfig, streams: EventStreams, *, clock: Clock, headers: Mapping[str, str]) -> Listener:
        """The account of an entry."""
        return cls(streams, clock, config.base_url.rstrip("/"), headers, config.private_addresses)

    def hear(self, url: str, *, after: str | None = None) -> Iterator[Message]:
        """Yields what is said at a URL, for as long as the connection lasts.

        Args:
            url: Of this account, or as an answer of its provider named it.
            after: Goes on after this message's id, where the provider can.

        Raises:
            Transient: No usable answer, or the stream broke, fell silent or grew too large.
            Gone: There is no such stream (404, 410), or its link leads where nothing of a provider's can be.
        """
        headers = {} if after is None else {"Last-Event-ID": after}
        try:
            credential = Credential(read_url(self.url).origin, self.headers)
            told = self.streams.listen(url, credential=credential, headers=headers, allowed=self.allowed)
            with closing(told):
                yield from (message for message in told if message is not None)
        except Declined as declined:
            raise self._fault(declined) from declined
        except AddressRefused as refused:
            raise Gone(f"the stream's link was refused: {refused.detail}") from refused
        except NoAnswer as broken:
            raise Transient(broken.detail) from broken

    def _fault(self, declined: Declined) -> Exception:
        if declined.answer.is_success:
            return Transient(answers.describe(declined.answer, "answered no stream"))
        return answers.read_fault(declined.answer, now=self.clock.now())


def object_of(message: Message) -> answers.Body:
    """The JSON object that a message is.

    Raises:
        Transient: It is none, so what it said is lost.
    """
    try:
        body = json.loads(message.data)
    except (ValueError, RecursionError) as error:
        raise Transient(f"a message of the stream is no JSON: {error}"[:300]) from error
    if not isinstance(body, dict):
        raise Transient("a message of the stream is no JSON object")
    return body


def text_of(value: object) -> str:
    """A piece of output as it may be stored; empty where it is none."""
    return clean(value) if isinstance(value, str) else ""
