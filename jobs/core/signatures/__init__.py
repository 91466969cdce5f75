"""Signatures of webhooks, both ways: `verify` what comes in, `sign` what goes out.

Each scheme is one file and one entry in `SCHEMES`. Whatever an anonymous caller sends, `verify` returns a
`Verified` or raises a `SignatureError`; nothing else can come out of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from jobs.core.errors import ConfigError, SignatureError
from jobs.core.signatures.cloudinary import CLOUDINARY
from jobs.core.signatures.fal import FAL
from jobs.core.signatures.hmac_body import HMAC_BODY
from jobs.core.signatures.hmac_timestamp_body import HMAC_TIMESTAMP_BODY
from jobs.core.signatures.scheme import (
    Binding,
    Incoming,
    Outgoing,
    Scheme,
    SchemeOptions,
    Secret,
    Verified,
    usable_delivery_id,
)
from jobs.core.signatures.shared_secret import SHARED_SECRET
from jobs.core.signatures.slack import SLACK
from jobs.core.signatures.standard_webhooks import STANDARD_WEBHOOKS
from jobs.core.signatures.timed_pairs import ELEVENLABS, STRIPE
from jobs.core.signatures.twilio import TWILIO
from jobs.core.signatures.unsigned import NONE

__all__ = ["SCHEMES", "Binding", "Scheme", "SchemeOptions", "Secret", "Verified", "parse_secrets", "sign", "verify"]

_ALL = (
    STANDARD_WEBHOOKS,
    STRIPE,
    ELEVENLABS,
    HMAC_BODY,
    HMAC_TIMESTAMP_BODY,
    SLACK,
    TWILIO,
    CLOUDINARY,
    FAL,
    SHARED_SECRET,
    NONE,
)
#: Every scheme by the name a configuration gives it.
SCHEMES: Mapping[str, Scheme] = {scheme.name: scheme for scheme in _ALL}

_DEFAULTS = SchemeOptions()


def verify(
    scheme: str,
    *,
    headers: Mapping[str, str],
    body: bytes,
    secrets: Sequence[Secret],
    now: datetime,
    options: SchemeOptions = _DEFAULTS,
    url: str = "",
) -> Verified:
    """Prove that a request came from its sender.

    Args:
        scheme: a name in `SCHEMES`.
        headers: by lower-case name; values as latin-1 text, any byte possible.
        body: the bytes on the wire, before any decoding.
        secrets: newest first, from `parse_secrets`; any of them may match, none matches where there are none.
        now: aware; the receiver's clock, or the time of receipt of a request that is checked again.
        options: what this sender does its own way.
        url: as the sender called it, query included; only `twilio` signs it.

    Returns:
        Which secret matched, and what the signed headers say.

    Raises:
        SignatureError: one of its children; the signature is judged before the time.
    """
    request = Incoming(headers=headers, body=body, secrets=secrets, now=now, options=options, url=url)
    verified = SCHEMES[scheme].verify(request)
    if verified.delivery_id is None and options.delivery_id_header is not None:
        return replace(verified, delivery_id=_delivery_id(request, options.delivery_id_header))
    return verified


def _delivery_id(request: Incoming, header: str) -> str | None:
    try:
        return usable_delivery_id(request.header(header))
    except SignatureError:  # the header is not signed: its absence proves nothing
        return None


def sign(
    scheme: str,
    *,
    secret: str,
    body: bytes,
    delivery_id: str,
    at: datetime,
    options: SchemeOptions = _DEFAULTS,
    url: str = "",
) -> dict[str, str]:
    """Return the headers that prove a body to its receiver.

    Args:
        scheme: a name in `SCHEMES`.
        secret: the sender's secret as text: for most schemes the same as the receiver's; a private key where the
            receiver has the public one; anything for `none`.
        body: the exact bytes that will be sent.
        delivery_id: the same on every try of one delivery; sent where the scheme has a place for it.
        at: aware; fresh on every try.
        options: what this receiver expects to be done its own way.
        url: as it will be called, query included; only `twilio` signs it.

    Raises:
        ValueError: the secret or the delivery id cannot be used.
    """
    chosen = SCHEMES[scheme]
    if usable_delivery_id(delivery_id.encode("utf-8", "surrogatepass")) is None:
        raise ValueError("a delivery id is 1 to 255 visible ASCII characters")
    parse = chosen.parse_signing_secret or chosen.parse_secret
    key = parse(secret) if chosen.takes_secrets else Secret(b"")
    message = Outgoing(secret=key, body=body, delivery_id=delivery_id, at=at, options=options, url=url)
    headers = chosen.sign(message)
    if options.delivery_id_header is not None and "delivery_id_header" in chosen.reads:
        headers[options.delivery_id_header] = delivery_id
    return headers


def parse_secrets(scheme: str, texts: Iterable[str], *, where: str = "webhook_secrets") -> tuple[Secret, ...]:
    """Read a provider's secrets, all or none.

    Args:
        scheme: a name in `SCHEMES`.
        texts: as configured, newest first.
        where: the setting's name, for the messages.

    Raises:
        ConfigError: every fault found, by position; no message quotes a secret.
    """
    parsed: list[Secret] = []
    faults: list[str] = []
    for number, text in enumerate(texts, start=1):
        try:
            parsed.append(SCHEMES[scheme].parse_secret(text))
        except ValueError as fault:
            faults.append(f"{where}: secret {number} {fault}")
    if faults:
        raise ConfigError(faults)
    return tuple(parsed)
