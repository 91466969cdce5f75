"""Stripe's scheme and its relatives: one header, `t=<seconds>,v1=<hex>[,v1=<hex>…]`, HMAC-SHA256 over `t.body`.

The secret is used as its text, `whsec_` included. Other keys in the header (Stripe's `v0`) are skipped. The delivery
id is not in a header: it is a field of the body, which the adapter declares.

Source: Stripe, "Verify webhook signatures manually"; Mux, the same under `Mux-Signature`; ElevenLabs, the same with
`v0` and 30 minutes of tolerance (its Python package, `webhooks.construct_event`).
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from jobs.core.signatures.matching import find_secret, hmac_sha256, read_pairs
from jobs.core.signatures.scheme import TIMED, USUAL_TOLERANCE, Incoming, Outgoing, Scheme, Secret, Verified
from jobs.core.signatures.secrets import read_text_secret
from jobs.core.signatures.timestamps import format_timestamp

_ELEVENLABS_TOLERANCE = timedelta(minutes=30)


def _verify(request: Incoming, *, header: str, version: str, tolerance: timedelta) -> Verified:
    stamp, candidates = read_pairs(request.header(request.options.header or header), version=version.encode())
    judge = request.parse_stamp(stamp)
    index = find_secret(
        request.secrets,
        candidates=candidates,
        expected=lambda secret: _signature(secret, stamp, request.body),
    )
    return Verified(index, None, judge(tolerance))


def _sign(message: Outgoing, *, header: str, version: str) -> dict[str, str]:
    stamp = format_timestamp(message.at, unit=message.options.timestamp_unit)
    signature = _signature(message.secret, stamp.encode(), message.body).decode()
    return {message.options.header or header: f"t={stamp},{version}={signature}"}


def _signature(secret: Secret, *signed: bytes) -> bytes:
    return hmac_sha256(secret, *signed).hex().encode()


def _scheme(name: str, header: str, *, version: str, tolerance: timedelta) -> Scheme:
    return Scheme(
        name,
        parse_secret=read_text_secret,
        verify=partial(_verify, header=header, version=version, tolerance=tolerance),
        sign=partial(_sign, header=header, version=version),
        reads=TIMED | {"header", "delivery_id_header"},
    )


STRIPE = _scheme("stripe", "Stripe-Signature", version="v1", tolerance=USUAL_TOLERANCE)
ELEVENLABS = _scheme("elevenlabs", "ElevenLabs-Signature", version="v0", tolerance=_ELEVENLABS_TOLERANCE)
