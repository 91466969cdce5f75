"""Ed25519: the sender signs with a private key, and everybody may know the public one.

Raw keys of 32 bytes in and out. A private key is kept as its seed; some write the public key behind it.

Source: RFC 8032; the arithmetic is that of the `cryptography` package.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from jobs.core.errors import Mismatch
from jobs.core.signatures.scheme import KeyKind, Secret

KEY_BYTES = 32
SIGNATURE_BYTES = 64


def find_signer(secrets: Sequence[Secret], *, signatures: Iterable[bytes], message: bytes) -> int:
    """Return the index of the first public key under which one of the signatures is good.

    Args:
        secrets: newest first; those that are no public keys are passed over.
        signatures: decoded; one of another length than 64 bytes is simply not good.
        message: what was signed.

    Raises:
        Mismatch: none is.
    """
    offered = [signature for signature in signatures if len(signature) == SIGNATURE_BYTES]
    for index, secret in enumerate(secrets):
        if secret.kind is KeyKind.PUBLIC and any(_is_good(secret, one, message) for one in offered):
            return index
    raise Mismatch


def sign_message(secret: Secret, message: bytes) -> bytes:
    """Return the signature of a message under a private key."""
    return Ed25519PrivateKey.from_private_bytes(secret.key).sign(message)


def public_key(raw: bytes) -> Secret:
    """Return a public key.

    Raises:
        ValueError: it has not 32 bytes.
    """
    return _key(raw, KeyKind.PUBLIC)


def private_key(raw: bytes) -> Secret:
    """Return a private key from its seed, with or without the public key behind it.

    Raises:
        ValueError: it has neither 32 nor 64 bytes, or the public key is another's.
    """
    secret = _key(raw[:KEY_BYTES] if len(raw) == 2 * KEY_BYTES else raw, KeyKind.PRIVATE)
    if raw[KEY_BYTES:] and raw[KEY_BYTES:] != _public_of(secret):
        raise ValueError("holds a private and a public key that do not belong together")
    return secret


def _public_of(secret: Secret) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(secret.key).public_key().public_bytes_raw()


def _key(raw: bytes, kind: KeyKind) -> Secret:
    if len(raw) != KEY_BYTES:
        raise ValueError(f"is {len(raw)} bytes long when decoded; an Ed25519 key has {KEY_BYTES}")
    return Secret(raw, kind)


def _is_good(secret: Secret, signature: bytes, message: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(secret.key).verify(signature, message)
    except (InvalidSignature, ValueError):  # ValueError: the key is no point of the curve
        return False
    return True
