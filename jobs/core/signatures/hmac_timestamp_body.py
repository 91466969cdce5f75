"""HMAC-SHA256 over `timestamp.body`, timestamp and signature in a header each.

By default `X-Timestamp: <seconds>` and `X-Signature: sha256=<hex>`; names, prefix, encoding and unit vary by sender.
The secret is used as its text.

Source: the common form of senders who took Stripe's idea and two headers; no single vendor owns it.
"""

from __future__ import annotations

from jobs.core.signatures.matching import as_written, find_secret, hmac_sha256, without_prefix, write_digest
from jobs.core.signatures.scheme import TIMED, USUAL_TOLERANCE, Incoming, Outgoing, Scheme, SchemeOptions, Verified
from jobs.core.signatures.secrets import read_text_secret
from jobs.core.signatures.timestamps import format_timestamp

_HEADER = "X-Signature"
_TIMESTAMP_HEADER = "X-Timestamp"
_PREFIX = "sha256="


def _verify(request: Incoming) -> Verified:
    options = request.options
    stamp = request.header(options.timestamp_header or _TIMESTAMP_HEADER)
    sent = without_prefix(request.header(options.header or _HEADER), _prefix(options))
    judge = request.parse_stamp(stamp)
    index = find_secret(
        request.secrets,
        candidates=[as_written(sent, options.encoding)],
        expected=lambda secret: write_digest(hmac_sha256(secret, stamp, request.body), options.encoding),
    )
    return Verified(index, None, judge(USUAL_TOLERANCE))


def _sign(message: Outgoing) -> dict[str, str]:
    options = message.options
    stamp = format_timestamp(message.at, unit=options.timestamp_unit)
    digest = hmac_sha256(message.secret, stamp.encode(), message.body)
    return {
        options.timestamp_header or _TIMESTAMP_HEADER: stamp,
        options.header or _HEADER: _prefix(options) + write_digest(digest, options.encoding).decode(),
    }


def _prefix(options: SchemeOptions) -> str:
    return _PREFIX if options.prefix is None else options.prefix


HMAC_TIMESTAMP_BODY = Scheme(
    "hmac-timestamp-body",
    parse_secret=read_text_secret,
    verify=_verify,
    sign=_sign,
    reads=TIMED | {"header", "timestamp_header", "prefix", "encoding", "delivery_id_header"},
)
