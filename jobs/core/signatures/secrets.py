"""Secrets of webhooks, read strictly: a typo must be a fault at start, never a key of three bytes.

Lenient base64 drops what it does not know, so `whsec_xyz!` would become a guessable key; a line break from a
secrets file would fail every check. Outer blanks are trimmed, since every secrets file ends in a newline.
Messages name the fault and never quote the secret.
"""

from __future__ import annotations

import base64
import binascii

from jobs.core.signatures.ed25519 import private_key, public_key
from jobs.core.signatures.scheme import Secret

#: Shortest decoded key that is taken: below 128 bits a recorded signature can be searched for its key.
MIN_KEY_BYTES = 16
#: Shortest secret that is used as its own text. Providers give 16 and more; vectors in the wild have 10.
MIN_TEXT_CHARS = 8

_PREFIX = "whsec_"
_PUBLIC = "whpk_"
_PRIVATE = "whsk_"
_PASTED = "v1,"


def read_standard_secret(text: str) -> Secret:
    """Return a receiver's key: `whsec_` (shared), or `whpk_` (the sender's public key), base64 behind it.

    Raises:
        ValueError: the fault, in words.

    Source: Standard Webhooks specification, "Symmetric signatures" and "Asymmetric signatures".
    """
    trimmed = _trimmed(text)
    if trimmed.startswith(_PRIVATE):
        raise ValueError("is the sender's private key (whsk_…); a receiver takes the public one (whpk_…)")
    if trimmed.startswith(_PUBLIC):
        return public_key(_decode(trimmed, _PUBLIC))
    return _shared(trimmed)


def read_standard_signing_secret(text: str) -> Secret:
    """Return a sender's key: `whsec_` (shared), or `whsk_` (its private key), base64 behind it.

    Raises:
        ValueError: the fault, in words.
    """
    trimmed = _trimmed(text)
    if trimmed.startswith(_PUBLIC):
        raise ValueError("is a public key (whpk_…), which signs nothing; a sender takes the private one (whsk_…)")
    if trimmed.startswith(_PRIVATE):
        return private_key(_decode(trimmed, _PRIVATE))
    return _shared(trimmed)


def read_public_key(text: str) -> Secret:
    """Return an Ed25519 public key written in base64 or base64url, padded or not.

    Raises:
        ValueError: the fault, in words.
    """
    return public_key(_decode_key(_trimmed(text)))


def read_private_key(text: str) -> Secret:
    """Return an Ed25519 private key written in base64 or base64url, padded or not.

    Raises:
        ValueError: the fault, in words.
    """
    return private_key(_decode_key(_trimmed(text)))


def read_text_secret(text: str) -> Secret:
    """Return a secret whose text, any `whsec_` included, is the key.

    Raises:
        ValueError: the fault, in words.
    """
    trimmed = _trimmed(text)
    if trimmed == _PREFIX:
        raise ValueError("holds nothing after whsec_")
    if not trimmed.isprintable():
        raise ValueError("has a line break or control character inside")
    if len(trimmed) < MIN_TEXT_CHARS:
        raise ValueError(f"is shorter than {MIN_TEXT_CHARS} characters")
    return Secret(trimmed.encode())


def _trimmed(text: str) -> str:
    trimmed = text.strip()
    if not trimmed:
        raise ValueError("is empty")
    if trimmed.startswith(_PASTED):
        raise ValueError("begins with 'v1,', which belongs to a signature; leave it out")
    return trimmed


def _shared(trimmed: str) -> Secret:
    key = _decode(trimmed, _PREFIX)
    if len(key) < MIN_KEY_BYTES:
        raise ValueError(f"is only {len(key)} bytes long when decoded; at least {MIN_KEY_BYTES} are needed")
    return Secret(key)


def _decode(text: str, prefix: str) -> bytes:
    encoded = text.removeprefix(prefix)
    if not encoded:
        raise ValueError(f"holds nothing after {prefix}")
    try:
        return base64.b64decode(encoded.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise ValueError(f"is not base64 after {prefix} (a character is wrong, or its end was cut)") from None


def _decode_key(text: str) -> bytes:
    standard = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(standard.encode("ascii") + b"=" * (-len(standard) % 4), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise ValueError("is not base64 (a character is wrong, or its end was cut)") from None
