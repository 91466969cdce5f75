"""Slack: `X-Slack-Signature: v0=<hex>`, HMAC-SHA256 over `v0:timestamp:body`.

The delivery id is a field of the body (`event_id`), not a header. The secret is used as its text.

Source: Slack, "Verifying requests from Slack".
"""

from __future__ import annotations

import hmac

from jobs.core.signatures.matching import find_secret, without_prefix
from jobs.core.signatures.scheme import TIMED, USUAL_TOLERANCE, Incoming, Outgoing, Scheme, Secret, Verified
from jobs.core.signatures.secrets import read_text_secret
from jobs.core.signatures.timestamps import format_timestamp

_HEADER = "X-Slack-Signature"
_TIMESTAMP_HEADER = "X-Slack-Request-Timestamp"
_PREFIX = "v0="


def _verify(request: Incoming) -> Verified:
    stamp = request.header(_TIMESTAMP_HEADER)
    sent = without_prefix(request.header(_HEADER), _PREFIX)
    judge = request.parse_stamp(stamp)
    index = find_secret(
        request.secrets,
        candidates=[sent.lower()],
        expected=lambda secret: _signature(secret, stamp, request.body),
    )
    return Verified(index, None, judge(USUAL_TOLERANCE))


def _sign(message: Outgoing) -> dict[str, str]:
    stamp = format_timestamp(message.at, unit=message.options.timestamp_unit)
    signature = _signature(message.secret, stamp.encode(), message.body).decode()
    return {_TIMESTAMP_HEADER: stamp, _HEADER: _PREFIX + signature}


def _signature(secret: Secret, stamp: bytes, body: bytes) -> bytes:
    return hmac.digest(secret.key, b"v0:" + stamp + b":" + body, "sha256").hex().encode()


SLACK = Scheme(
    "slack",
    parse_secret=read_text_secret,
    verify=_verify,
    sign=_sign,
    reads=TIMED | {"delivery_id_header"},
)
