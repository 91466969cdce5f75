"""Stripe's scheme: `Stripe-Signature: t=<seconds>,v1=<hex>[,v1=<hex>…]`, HMAC-SHA256 over `t.body`.

The secret is used as its text, `whsec_` included. Other keys in the header (`v0`) are skipped. The delivery
id is not in a header: it is a field of the body, which the adapter declares.

Source: Stripe, "Verify webhook signatures manually"; users: Stripe, Mux (header `Mux-Signature`).
"""

from __future__ import annotations

from jobs.core.errors import Malformed
from jobs.core.signatures.matching import find_secret, hmac_sha256
from jobs.core.signatures.scheme import Incoming, Outgoing, Scheme, SchemeOptions, Secret, Verified
from jobs.core.signatures.secrets import read_text_secret
from jobs.core.signatures.timestamps import check_fresh, format_timestamp, parse_timestamp

_HEADER = "Stripe-Signature"


def _verify(request: Incoming) -> Verified:
    stamp, candidates = _parse(request.header(_header_name(request.options)))
    stamp_number = parse_timestamp(stamp)
    index = find_secret(
        request.secrets,
        candidates=candidates,
        expected=lambda secret: _signature(secret, stamp, request.body),
    )
    options = request.options
    signed_at = check_fresh(stamp_number, now=request.now, unit=options.timestamp_unit, tolerance=options.tolerance)
    return Verified(index, None, signed_at)


def _sign(message: Outgoing) -> dict[str, str]:
    stamp = format_timestamp(message.at, unit=message.options.timestamp_unit)
    signature = _signature(message.secret, stamp.encode(), message.body).decode()
    return {_header_name(message.options): f"t={stamp},v1={signature}"}


def _parse(header: bytes) -> tuple[bytes, list[bytes]]:
    """Return the timestamp as sent and the `v1` signatures in lower case.

    Raises:
        Malformed: no timestamp, more than one, or no signature. Two timestamps would leave open which one
            was signed and which one is fresh.
    """
    pairs = [item.strip(b" \t").partition(b"=") for item in header.split(b",")]
    stamps = [value for key, _, value in pairs if key == b"t"]
    signatures = [value.lower() for key, _, value in pairs if key == b"v1" and value]
    if len(stamps) != 1 or not signatures:
        raise Malformed("the header does not read t=…,v1=…")
    return stamps[0], signatures


def _signature(secret: Secret, *signed: bytes) -> bytes:
    return hmac_sha256(secret, *signed).hex().encode()


def _header_name(options: SchemeOptions) -> str:
    return options.header or _HEADER


STRIPE = Scheme("stripe", parse_secret=read_text_secret, verify=_verify, sign=_sign)
