"""JSON Web Key Sets: the Ed25519 keys a sender publishes. Reading only; fetching and keeping is the receiver's.

Source: RFC 7517 (key sets), RFC 8037 (`OKP`, `Ed25519`).
"""

from __future__ import annotations

from jobs.core.errors import Unusable
from jobs.core.signatures.scheme import Secret
from jobs.core.signatures.secrets import read_public_key
from jobs.core.text import decode_json

#: A sender that rotates has two or three; each is tried for each request, so their number is bounded.
MAX_KEYS = 16


def parse_key_set(raw: bytes) -> tuple[Secret, ...]:
    """Return the Ed25519 keys of a key set, in its order; keys of other kinds are left out.

    Raises:
        Unusable: it is no key set, or has no key we can use. Keys known from before are better than none.
    """
    document = decode_json(raw)
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise Unusable("not a JSON Web Key Set")
    keys = [key for key in map(_read, listed) if key is not None][:MAX_KEYS]
    if not keys:
        raise Unusable("the key set has no Ed25519 key")
    return tuple(keys)


def _read(entry: object) -> Secret | None:
    if not isinstance(entry, dict) or (entry.get("kty"), entry.get("crv")) != ("OKP", "Ed25519"):
        return None
    if entry.get("use", "sig") != "sig" or not isinstance(entry.get("x"), str):
        return None
    try:
        return read_public_key(entry["x"])
    except ValueError:
        return None
