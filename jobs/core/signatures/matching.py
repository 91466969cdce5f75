"""Compare what came with what should have come, in constant time and without decoding the caller's text."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable, Iterable, Sequence

from jobs.core.errors import Malformed, Mismatch
from jobs.core.signatures.scheme import Encoding, KeyKind, Secret


def hmac_sha1(secret: Secret, message: bytes) -> bytes:
    """Return the digest over a message, for senders that never moved on (HMAC-SHA1 is not broken by collisions)."""
    return hmac.digest(secret.key, message, "sha1")


def hmac_sha256(secret: Secret, *parts: bytes) -> bytes:
    """Return the digest over the parts joined by full stops."""
    return hmac.digest(secret.key, b".".join(parts), "sha256")


def find_secret(secrets: Sequence[Secret], *, candidates: Iterable[bytes], expected: Callable[[Secret], bytes]) -> int:
    """Return the index of the first secret for which one of the candidates is the signature.

    Args:
        secrets: newest first.
        candidates: signatures as sent, as bytes: `compare_digest` raises on text that is not ASCII.
        expected: the signature a secret gives, in the form the candidates have.

    Raises:
        Mismatch: none is.
    """
    offered = tuple(candidates)
    for index, secret in enumerate(secrets):
        if secret.kind is not KeyKind.SHARED:
            continue
        wanted = expected(secret)
        if any(hmac.compare_digest(wanted, candidate) for candidate in offered):
            return index
    raise Mismatch


def read_pairs(header: bytes, *, version: bytes) -> tuple[bytes, list[bytes]]:
    """Return timestamp and signatures of a header that reads `t=…,<version>=…`, signatures in lower case.

    Raises:
        Malformed: no timestamp, more than one, or no signature. Two timestamps would leave open which one
            was signed and which one is fresh.
    """
    pairs = [item.strip(b" \t").partition(b"=") for item in header.split(b",")]
    stamps = [value for key, _, value in pairs if key == b"t"]
    signatures = [value.lower() for key, _, value in pairs if key == version and value]
    if len(stamps) != 1 or not signatures:
        raise Malformed("the header does not read t=…," + version.decode() + "=…")
    return stamps[0], signatures


def without_prefix(header: bytes, prefix: str) -> bytes:
    """Return what follows the prefix, in whatever case it was written and with or without a blank after it.

    Raises:
        Malformed: another prefix, or nothing after it.
    """
    wanted = prefix.encode()
    digest = header[len(wanted) :].strip(b" \t")
    if header[: len(wanted)].lower() != wanted.lower() or not digest:
        raise Malformed("the header does not hold one value of the expected kind")
    return digest


def write_digest(digest: bytes, encoding: Encoding) -> bytes:
    """Return a digest as its sender writes it."""
    return digest.hex().encode() if encoding == "hex" else base64.b64encode(digest)


def as_written(sent: bytes, encoding: Encoding) -> bytes:
    """Return a digest as sent in the form `write_digest` gives: the case of hex does not matter."""
    return sent.lower() if encoding == "hex" else sent
