"""Secrets of webhooks, read strictly: a typo must be a fault at start, never a key of three bytes.

Lenient base64 drops what it does not know, so `whsec_xyz!` would become a guessable key; a line break from a
secrets file would fail every check. Outer blanks are trimmed, since every secrets file ends in a newline.
Messages name the fault and never quote the secret.
"""

from __future__ import annotations

import base64
import binascii

from jobs.core.signatures.scheme import Secret

#: Shortest decoded key that is taken: below 128 bits a recorded signature can be searched for its key.
MIN_KEY_BYTES = 16
#: Shortest secret that is used as its own text. Providers give 16 and more; vectors in the wild have 10.
MIN_TEXT_CHARS = 8

_PREFIX = "whsec_"
_PASTED = "v1,"


def decode_whsec(text: str) -> Secret:
    """Return the key of a Standard Webhooks secret: base64 after an optional `whsec_`.

    Raises:
        ValueError: the fault, in words.

    Source: Standard Webhooks specification, "Symmetric signatures".
    """
    trimmed = _trimmed(text)
    if trimmed.startswith(("whpk_", "whsk_")):
        raise ValueError("is an Ed25519 key (whpk_/whsk_); this scheme takes a shared secret (whsec_…)")
    encoded = trimmed.removeprefix(_PREFIX)
    if not encoded:
        raise ValueError("holds nothing after whsec_")
    try:
        key = base64.b64decode(encoded.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise ValueError("is not base64 after whsec_ (a character is wrong, or its end was cut)") from None
    if len(key) < MIN_KEY_BYTES:
        raise ValueError(f"is only {len(key)} bytes long when decoded; at least {MIN_KEY_BYTES} are needed")
    return Secret(key)


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
