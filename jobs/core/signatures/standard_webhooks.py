"""Standard Webhooks over `id.timestamp.body`, base64: HMAC-SHA256 (`v1`), or Ed25519 (`v1a`).

Headers `webhook-id`, `webhook-timestamp`, `webhook-signature`, or the same under their older name `svix-*`.
The signature header holds any number of `version,signature`, separated by blanks; versions we do not know
are skipped, so that a sender may sign with the next one as well. A `whsec_` secret answers for `v1`, a `whpk_`
public key for `v1a`; either may stand among a receiver's secrets.

Source: Standard Webhooks specification; users: Replicate, OpenAI, Gemini, Svix, Resend.
"""

from __future__ import annotations

import base64
import binascii

from jobs.core.errors import Malformed, Mismatch, Missing
from jobs.core.signatures.ed25519 import find_signer, sign_message
from jobs.core.signatures.matching import find_secret, hmac_sha256
from jobs.core.signatures.scheme import (
    TIMED,
    USUAL_TOLERANCE,
    Incoming,
    KeyKind,
    Outgoing,
    Scheme,
    Secret,
    Verified,
    usable_delivery_id,
)
from jobs.core.signatures.secrets import read_standard_secret, read_standard_signing_secret
from jobs.core.signatures.timestamps import format_timestamp

_FAMILIES = ("webhook", "svix")
_SHARED = b"v1,"
_ASYMMETRIC = b"v1a,"


def _verify(request: Incoming) -> Verified:
    delivery_id, stamp, signatures = _read_headers(request)
    judge = request.parse_stamp(stamp)
    words = _words(signatures)
    try:
        index = find_secret(
            request.secrets,
            candidates=[word.removeprefix(_SHARED) for word in words if word.startswith(_SHARED)],
            expected=lambda secret: _signature(secret, delivery_id, stamp, request.body),
        )
    except Mismatch:
        message = b".".join((delivery_id, stamp, request.body))
        index = find_signer(request.secrets, signatures=_decoded(words), message=message)
    return Verified(index, usable_delivery_id(delivery_id), judge(USUAL_TOLERANCE))


def _sign(message: Outgoing) -> dict[str, str]:
    stamp = format_timestamp(message.at, unit=message.options.timestamp_unit)
    parts = (message.delivery_id.encode(), stamp.encode(), message.body)
    if message.secret.kind is KeyKind.PRIVATE:
        signature = _ASYMMETRIC + base64.b64encode(sign_message(message.secret, b".".join(parts)))
    else:
        signature = _SHARED + _signature(message.secret, *parts)
    return {
        "webhook-id": message.delivery_id,
        "webhook-timestamp": stamp,
        "webhook-signature": signature.decode(),
    }


def _read_headers(request: Incoming) -> tuple[bytes, bytes, bytes]:
    """Return id, timestamp and signatures of the first family that is complete; families never mix."""
    for family in _FAMILIES:
        names = [f"{family}-{part}" for part in ("id", "timestamp", "signature")]
        if all(name in request.headers for name in names):
            delivery_id, stamp, signatures = (request.header(name) for name in names)
            return delivery_id, stamp, signatures
    raise Missing


def _words(signatures: bytes) -> list[bytes]:
    """Return the `version,signature` words of a header.

    Raises:
        Malformed: nothing in it is one.
    """
    words = signatures.split()
    if not any(version and signature for version, _, signature in (word.partition(b",") for word in words)):
        raise Malformed("no signature in the signature header")
    return words


def _decoded(words: list[bytes]) -> list[bytes]:
    """Return the `v1a` signatures; unlike a digest, one has to be decoded to be checked."""
    decoded = []
    for word in words:
        try:
            if word.startswith(_ASYMMETRIC):
                decoded.append(base64.b64decode(word.removeprefix(_ASYMMETRIC), validate=True))
        except binascii.Error:
            continue
    return decoded


def _signature(secret: Secret, *signed: bytes) -> bytes:
    return base64.b64encode(hmac_sha256(secret, *signed))


STANDARD_WEBHOOKS = Scheme(
    "standard-webhooks",
    parse_secret=read_standard_secret,
    parse_signing_secret=read_standard_signing_secret,
    verify=_verify,
    sign=_sign,
    reads=TIMED,
)
