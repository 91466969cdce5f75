"""Listening to a provider that tells what it makes while it makes it.

Whoever listens waits for somebody else's words for a long time, so everything is bounded: one message, all of them
together, the silence between two reads, the life of the connection. An account's own address is trusted, as its
operator wrote it; a link that an answer brought is judged by the address guard, and bears no credential.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass

from jobs.core.addresses import Network, read_url
from jobs.core.errors import Transient
from jobs.net.guard import Guard
from jobs.net.guarded import Credential, GuardedClient, Stream
from jobs.net.http import Answer, Bounds, NoAnswer
from jobs.net.sse import Message, messages

_EVENT_STREAM = "text/event-stream"
_HEADERS = {"Accept": _EVENT_STREAM, "Cache-Control": "no-store"}
_KEPT_BYTES = 1024 * 1024


class Declined(Transient):
    """The other side answered with something else than a stream."""

    slug = "declined"

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"no stream of events: HTTP {answer.status}")
        self.answer = answer


@dataclass(frozen=True, slots=True)
class StreamBounds:
    """Limits of one stream.

    Attributes:
        connect_s: For name, connection and handshake.
        silence_s: Longest time without a byte. Models think for a while before they speak.
        life_s: For the whole connection; longer than most runs, because a provider that cannot go on where it left
            off says everything again.
        max_bytes: All of it.
        max_message_chars: One message.
    """

    connect_s: float = 3.0
    silence_s: float = 90.0
    life_s: float = 3600.0
    max_bytes: int = 256 * 1024 * 1024
    max_message_chars: int = 4 * 1024 * 1024


class EventStreams:
    """Opens streams. One per process; each thread listens to one at a time."""

    def __init__(
        self,
        guard: Guard | None = None,
        *,
        bounds: StreamBounds | None = None,
        monotonic: Callable[[], float] | None = None,
    ) -> None:
        """Dials nobody yet.

        Args:
            guard: Judges links that answers bring.
            bounds: Limits of each stream.
            monotonic: A clock in seconds.
        """
        self._bounds = bounds or StreamBounds()
        self._guard = guard or Guard()
        self._monotonic = monotonic

    def listen(
        self,
        url: str,
        *,
        credential: Credential,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        allowed: Iterable[Network] = (),
        within_s: float | None = None,
    ) -> Generator[Message | None]:
        """Yields messages, and None for signs of life, until the other side ends the stream.

        The connection is open between two of them; closing the iterator closes it. A redirect is not followed.

        Args:
            url: To listen to.
            credential: The account's origin, which is trusted, and what is sent there and nowhere else.
            headers: Sent along wherever the stream is.
            body: To be posted, where a stream answers a submit.
            allowed: Networks that a link may lead to besides public addresses.
            within_s: How long the whole may take, instead of a stream's usual life.

        Raises:
            AddressRefused: The guard said no.
            Declined: It is no stream; what was answered instead comes along.
            NotSent: Nothing left.
            NoAnswer: It left, and the stream broke off, fell silent or lived too long.
            Transient: It was too large.
        """
        trusted = read_url(url).origin == credential.origin
        client = GuardedClient(
            Guard(lifted=True) if trusted else self._guard, bounds=self._limits(within_s), monotonic=self._monotonic
        )
        method, sent = "GET" if body is None else "POST", {**_HEADERS, **(headers or {})}
        with client.open(method, url, headers=sent, body=body, allowed=allowed, credential=credential) as stream:
            _check(stream)
            yield from messages(self._bounded(stream), max_chars=self._bounds.max_message_chars)

    def _limits(self, within_s: float | None) -> Bounds:
        bounds = self._bounds
        if within_s is None:
            return Bounds(bounds.connect_s, bounds.silence_s, bounds.life_s)
        return Bounds(bounds.connect_s, min(within_s, bounds.silence_s), within_s)

    def _bounded(self, stream: Stream) -> Iterator[bytes]:
        size = 0
        for piece in stream.pieces():
            size += len(piece)
            if size > self._bounds.max_bytes:
                raise Transient(f"the stream is larger than {self._bounds.max_bytes} bytes")
            yield piece


def _check(stream: Stream) -> None:
    kind = stream.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    encoding = stream.headers.get("Content-Encoding", "identity").strip().lower()
    if stream.status != 200 or kind != _EVENT_STREAM or encoding not in ("", "identity"):
        raise Declined(Answer(stream.status, stream.headers, _beginning(stream)))


def _beginning(stream: Stream) -> bytes:
    """What it says instead: enough for a fault to be read from."""
    parts, size = [], 0
    try:
        for piece in stream.pieces():
            parts.append(piece)
            size += len(piece)
            if size >= _KEPT_BYTES:
                break
    except NoAnswer:
        pass  # its status says enough
    return b"".join(parts)[:_KEPT_BYTES]
