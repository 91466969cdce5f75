"""Cloudinary: `X-Cld-Signature`, a plain digest (no HMAC) over body, timestamp and API secret, in hex.

SHA-1 unless the account was switched to SHA-256; the digest is the account's, so the length of what was sent does
not choose it. A timestamp may be two hours old, as in Cloudinary's own client, which has no bound ahead; ours has.

Source: Cloudinary, "Verifying notification signatures", and its Python package.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta

from jobs.core.signatures.matching import find_secret
from jobs.core.signatures.scheme import TIMED, Algorithm, Incoming, Outgoing, Scheme, Secret, Verified
from jobs.core.signatures.secrets import read_text_secret
from jobs.core.signatures.timestamps import format_timestamp

_HEADER = "X-Cld-Signature"
_TIMESTAMP_HEADER = "X-Cld-Timestamp"
_TOLERANCE = timedelta(hours=2)


def _verify(request: Incoming) -> Verified:
    stamp = request.header(_TIMESTAMP_HEADER)
    sent = request.header(_HEADER)
    judge = request.parse_stamp(stamp)
    index = find_secret(
        request.secrets,
        candidates=[sent.lower()],
        expected=lambda secret: _signature(secret, stamp, request.body, algorithm=request.options.algorithm),
    )
    return Verified(index, None, judge(_TOLERANCE))


def _sign(message: Outgoing) -> dict[str, str]:
    stamp = format_timestamp(message.at, unit=message.options.timestamp_unit)
    signature = _signature(message.secret, stamp.encode(), message.body, algorithm=message.options.algorithm)
    return {_TIMESTAMP_HEADER: stamp, _HEADER: signature.decode()}


def _signature(secret: Secret, stamp: bytes, body: bytes, *, algorithm: Algorithm) -> bytes:
    return hashlib.new(algorithm, body + stamp + secret.key).hexdigest().encode()


CLOUDINARY = Scheme(
    "cloudinary",
    parse_secret=read_text_secret,
    verify=_verify,
    sign=_sign,
    reads=TIMED | {"algorithm", "delivery_id_header"},
)
