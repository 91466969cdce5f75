"""Standard Webhooks, symmetric (`v1`): HMAC-SHA256 over `id.timestamp.body`, base64.

Headers `webhook-id`, `webhook-timestamp`, `webhook-signature`, or the same under their older name `svix-*`.
The signature header holds any number of `version,signature`, separated by blanks; versions we do not know
are skipped, so that a sender may sign with the next one as well.

Source: Standard Webhooks specification; users: Replicate, OpenAI, Gemini, Svix, Resend.
"""

from __future__ import annotations

import base64

from jobs.core.errors import Malformed, Missing
from jobs.core.signatures.matching import find_secret, hmac_sha256
from jobs.core.signatures.scheme import Incoming, Outgoing, Scheme, Secret, Verified, usable_delivery_id
from jobs.core.signatures.secrets import decode_whsec
from jobs.core.signatures.timestamps import check_fresh, format_timestamp, parse_timestamp

_FAMILIES = ("webhook", "svix")
_VERSION = b"v1,"


def _verify(request: Incoming) -> Verified:
    delivery_id, stamp, signatures = _read_headers(request)
    stamp_number = parse_timestamp(stamp)
    candidates = _candidates(signatures)
    index = find_secret(
        request.secrets,
        candidates=candidates,
        expected=lambda secret: _signature(secret, delivery_id, stamp, request.body),
    )
    options = request.options
    signed_at = check_fresh(stamp_number, now=request.now, unit=options.timestamp_unit, tolerance=options.tolerance)
    return Verified(index, usable_delivery_id(delivery_id), signed_at)


def _sign(message: Outgoing) -> dict[str, str]:
    stamp = format_timestamp(message.at, unit=message.options.timestamp_unit)
    signature = _signature(message.secret, message.delivery_id.encode(), stamp.encode(), message.body)
    return {
        "webhook-id": message.delivery_id,
        "webhook-timestamp": stamp,
        "webhook-signature": (_VERSION + signature).decode(),
    }


def _read_headers(request: Incoming) -> tuple[bytes, bytes, bytes]:
    """Return id, timestamp and signatures of the first family that is complete; families never mix."""
    for family in _FAMILIES:
        names = [f"{family}-{part}" for part in ("id", "timestamp", "signature")]
        if all(name in request.headers for name in names):
            delivery_id, stamp, signatures = (request.header(name) for name in names)
            return delivery_id, stamp, signatures
    raise Missing


def _candidates(signatures: bytes) -> list[bytes]:
    """Return the `v1` signatures of a header.

    Raises:
        Malformed: nothing in it is `version,signature`.
    """
    words = signatures.split()
    if not any(version and signature for version, _, signature in (word.partition(b",") for word in words)):
        raise Malformed("no signature in the signature header")
    return [word.removeprefix(_VERSION) for word in words if word.startswith(_VERSION)]


def _signature(secret: Secret, *signed: bytes) -> bytes:
    return base64.b64encode(hmac_sha256(secret, *signed))


STANDARD_WEBHOOKS = Scheme("standard-webhooks", parse_secret=decode_whsec, verify=_verify, sign=_sign)
