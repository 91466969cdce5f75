"""Downloads a file that somebody else named: guarded, bounded on the wire and after decoding, and whole or nothing."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from jobs.core.addresses import Network
from jobs.core.errors import JobsError, Permanent, Transient
from jobs.core.media import HEAD_BYTES
from jobs.net.guarded import Credential, GuardedClient, Stream

MAX_REDIRECTS = 5
_GONE = frozenset({403, 404, 410})
_GZIP = 16 + zlib.MAX_WBITS
_PIECE_BYTES = 256 * 1024


class LinkGone(JobsError):
    """The address no longer gives the file away; a fresh one may."""

    slug = "link-gone"
    status = 410


class TooLarge(Permanent):
    """More bytes than are allowed."""

    slug = "too-large"


class Damaged(Transient):
    """What came is not the whole file; another try may bring it."""

    slug = "damaged"


@dataclass(frozen=True, slots=True)
class Download:
    """What was written.

    Attributes:
        head: The first bytes.
        content_type: As the answer's header says.
    """

    size: int
    sha256: str
    head: bytes
    content_type: str | None


def download(
    client: GuardedClient,
    url: str,
    sink: BinaryIO,
    *,
    max_bytes: int,
    allowed: Iterable[Network] = (),
    credential: Credential | None = None,
) -> Download:
    """Writes a file into ``sink``.

    Args:
        client: Guards the URL and each redirect.
        url: As the provider gave it, byte for byte.
        sink: Empty; what is in it after an error is worth nothing.
        max_bytes: On the wire, and decoded.
        allowed: Networks that may be used besides public addresses.
        credential: Sent to its own origin only; without one nothing of ours is sent along.

    Raises:
        AddressRefused: The guard said no.
        LinkGone: 403, 404 or 410.
        TooLarge: It says it is, or it turned out to be.
        Damaged: Cut, partial, or encoded in a way nobody asked for.
        NotSent, NoAnswer, Transient: No usable answer.
    """
    with client.open("GET", url, allowed=allowed, redirects=MAX_REDIRECTS, credential=credential) as stream:
        _check_status(stream)
        _check_length(stream, max_bytes)
        digest, head, size = hashlib.sha256(), b"", 0
        for piece in _decoded(stream, max_bytes):
            size += len(piece)
            if size > max_bytes:
                raise TooLarge(f"it is larger than {max_bytes} bytes")
            head = (head + piece)[:HEAD_BYTES] if len(head) < HEAD_BYTES else head
            digest.update(piece)
            sink.write(piece)
    sink.flush()
    return Download(size, digest.hexdigest(), head, stream.headers.get("Content-Type"))


def _check_status(stream: Stream) -> None:
    if stream.status in _GONE:
        raise LinkGone(f"HTTP {stream.status}")
    if stream.status != 200:
        words = "a part of it came to a request for the whole" if stream.status == 206 else f"HTTP {stream.status}"
        raise Damaged(words)


def _check_length(stream: Stream, max_bytes: int) -> None:
    length = stream.headers.get("Content-Length", "")
    if length.isascii() and length.isdigit() and int(length[:20]) > max_bytes:
        raise TooLarge(f"it says it is {length[:20]} bytes, and {max_bytes} are allowed")


def _decoded(stream: Stream, max_bytes: int) -> Iterator[bytes]:
    """The body's own bytes. No encoding was asked for, but servers apply one all the same."""
    encoding = stream.headers.get("Content-Encoding", "identity").strip().lower()
    wire = _bounded(stream, max_bytes)
    if encoding in ("", "identity"):
        yield from wire
    elif encoding in ("gzip", "x-gzip"):
        yield from _gunzipped(wire)
    else:
        raise Damaged(f"it is encoded as {encoding[:50]!r}, which nobody asked for")


def _bounded(stream: Stream, max_bytes: int) -> Iterator[bytes]:
    size = 0
    for chunk in stream.chunks():
        size += len(chunk)
        if size > max_bytes:
            raise TooLarge(f"it is larger than {max_bytes} bytes")
        yield chunk


def _gunzipped(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """In bounded pieces, so that a small chunk that unpacks to gigabytes never is in memory."""
    unpack = zlib.decompressobj(_GZIP)
    try:
        for chunk in chunks:
            rest = chunk
            while rest and not unpack.eof:
                yield unpack.decompress(rest, _PIECE_BYTES)
                rest = unpack.unconsumed_tail
    except zlib.error as error:
        raise Damaged(f"its gzip stream is broken: {error}") from error
    if not unpack.eof:
        raise Damaged("its gzip stream has no end")
