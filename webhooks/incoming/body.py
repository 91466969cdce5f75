"""Reading a body without ever holding more of it than the limit allows."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

from jobs.core.errors import BadRequest, TooLarge, UnsupportedCoding, Unusable
from webhooks.incoming.exchange import Stream

_CHUNK_BYTES = 64 * 1024
_GZIP_WINDOW = 31  # zlib's own number for "32 KiB window, gzip wrapper only"
_GZIP = frozenset({"gzip", "x-gzip"})
_TAKEN = _GZIP | {"", "identity"}


def check_coding(headers: Mapping[str, str]) -> None:
    """Takes gzip or nothing; several codings, even of one kind, multiply what a few bytes can unfold to.

    Raises:
        UnsupportedCoding: Anything else.
    """
    if _coding_of(headers) not in _TAKEN:
        raise UnsupportedCoding


def read_body(stream: Stream, *, length: int | None, limit_bytes: int) -> bytes:
    """Reads a body whole.

    Args:
        stream: Where it comes from.
        length: Its announced length; None: it ends where the stream ends.
        limit_bytes: More than this is not kept.

    Raises:
        TooLarge: It is, or says it will be, longer than the limit.
        BadRequest: The sender went away in the middle of it.
    """
    if length is not None and length > limit_bytes:
        raise TooLarge(f"the body says it has {length} bytes; the limit is {limit_bytes}")
    body = _read(stream, limit_bytes + 1 if length is None else length)
    if len(body) > limit_bytes:
        raise TooLarge(f"the body has more than {limit_bytes} bytes")
    if length is not None and len(body) < length:
        raise BadRequest("the body ended before its announced length")
    return body


def _read(stream: Stream, wanted: int) -> bytes:
    parts: list[bytes] = []
    missing = wanted
    while missing > 0:
        try:
            chunk = stream.read(min(_CHUNK_BYTES, missing))
        except OSError:
            raise BadRequest("the connection was lost before the body had arrived") from None
        if not chunk:
            break
        parts.append(chunk)
        missing -= len(chunk)
    return b"".join(parts)


def decode_body(raw: bytes, headers: Mapping[str, str], *, limit_bytes: int) -> bytes:
    """Undoes the content coding.

    Raises:
        TooLarge: Decoded, it is longer than the limit; memory never holds more than that.
        Unusable: It is not what its header says.
    """
    return _gunzip(raw, limit_bytes=limit_bytes) if _coding_of(headers) in _GZIP else raw


def _coding_of(headers: Mapping[str, str]) -> str:
    return headers.get("content-encoding", "").strip().lower()


def _gunzip(raw: bytes, *, limit_bytes: int) -> bytes:
    """A gzip file is one member after another, each with its own end."""
    decoded, rest = bytearray(), raw
    while rest:
        member = zlib.decompressobj(_GZIP_WINDOW)
        try:
            decoded += member.decompress(rest, limit_bytes + 1 - len(decoded))
        except zlib.error:
            raise Unusable("not gzip, though its header says so") from None
        if len(decoded) > limit_bytes:
            raise TooLarge(f"decoded, the body has more than {limit_bytes} bytes")
        if not member.eof:
            raise Unusable("the gzip data is cut off")
        rest = member.unused_data
    return bytes(decoded)
