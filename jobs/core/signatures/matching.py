"""Compare what came with what should have come, in constant time and without decoding the caller's text."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Sequence

from jobs.core.errors import Mismatch
from jobs.core.signatures.scheme import Secret


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
        wanted = expected(secret)
        if any(hmac.compare_digest(wanted, candidate) for candidate in offered):
            return index
    raise Mismatch
