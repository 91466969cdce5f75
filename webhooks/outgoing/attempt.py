"""One try at sending: bounded in time and size, never following, guarded at the moment of the connection.

What counts is the status line within the bounds. A 2xx whose body drips, never ends or breaks off is a success: the
receiver has said that it took the event. A redirect is a failure and is not followed: where it leads was never
registered.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from jobs.core import text
from jobs.core.errors import JobsError
from jobs.net.guard import AddressRefused, Guard
from jobs.net.guarded import GuardedClient, Stream
from jobs.net.http import Bounds, NoAnswer, NotSent

#: One try takes no longer, name and handshake and answer together. Below :data:`webhooks.outgoing.lanes.LEASE`.
BOUNDS = Bounds(connect_s=5.0, read_s=14.0, total_s=14.0, max_bytes=64 * 1024)
#: Kept of an answer's body, for a person.
EXCERPT_CHARS = 1000


@dataclass(frozen=True, slots=True)
class Answered:
    """What came of one try.

    Attributes:
        status: Of the status line; None where none came.
        error: A short name of what went wrong, that stays the same; None for a 2xx.
        excerpt: The beginning of the answer, or what went wrong in words.
        retry_after: The header as sent.
    """

    status: int | None = None
    error: str | None = None
    excerpt: str | None = None
    retry_after: str | None = None

    @property
    def is_success(self) -> bool:
        """Whether the receiver took the event."""
        return self.error is None

    @property
    def is_gone(self) -> bool:
        """Whether the receiver wants nothing more, ever."""
        return self.status == 410

    @property
    def asks_for_a_pause(self) -> bool:
        """Whether the endpoint as a whole is to be left alone until its Retry-After."""
        return self.status in (429, 503) and self.retry_after is not None


class Send(Protocol):
    """How a try is made."""

    def __call__(self, url: str, *, headers: Mapping[str, str], body: bytes) -> Answered:
        """Sends once; never raises what the other side, or the way to it, has done."""
        ...


@dataclass(frozen=True, slots=True)
class Sender:
    """Tries over the network.

    Attributes:
        guard: Judges the URL at each try, whenever it was judged before.
        bounds: Limits of one try.
        ca_file: Certificates to trust instead of the usual ones.
    """

    guard: Guard
    bounds: Bounds = BOUNDS
    ca_file: str | None = None

    def __call__(self, url: str, *, headers: Mapping[str, str], body: bytes) -> Answered:
        """Sends once."""
        client = GuardedClient(self.guard, bounds=self.bounds, ca_file=self.ca_file)
        try:
            with client.open("POST", url, headers=headers, body=body) as stream:
                return _read(stream, most=self.bounds.max_bytes)
        except AddressRefused as error:
            return Answered(error=f"address_refused:{error.rule}", excerpt=error.detail[:EXCERPT_CHARS])
        except (NotSent, NoAnswer) as error:
            return Answered(error=error.slug.replace("-", "_"), excerpt=_words(error))


def _read(stream: Stream, *, most: int) -> Answered:
    status = stream.status
    return Answered(status, _fault(status), _excerpt(stream, most=most), stream.headers.get("Retry-After"))


def _fault(status: int) -> str | None:
    if 200 <= status < 300:
        return None
    return "redirect_not_followed" if 300 <= status < 400 else f"status_{status}"


def _excerpt(stream: Stream, *, most: int) -> str | None:
    """The beginning of the body, if it comes in time; the status has said what matters."""
    read = b""
    with suppress(NoAnswer):
        for chunk in stream.chunks():
            read += chunk
            if len(read) >= most:
                break
    return text.excerpt(read, limit=EXCERPT_CHARS) or None


def _words(error: JobsError) -> str:
    return text.clean(error.detail)[:EXCERPT_CHARS]
