"""Signatures of webhooks, both ways: `verify` what comes in, `sign` what goes out.

Each scheme is one file and one entry in `SCHEMES`. Whatever an anonymous caller sends, `verify` returns a
`Verified` or raises a `SignatureError`; nothing else can come out of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from jobs.core.errors import ConfigError
from jobs.core.signatures.hmac_body import HMAC_BODY
from jobs.core.signatures.scheme import (
    Incoming,
    Outgoing,
    Scheme,
    SchemeOptions,
    Secret,
    Verified,
    usable_delivery_id,
)
from jobs.core.signatures.standard_webhooks import STANDARD_WEBHOOKS
from jobs.core.signatures.stripe import STRIPE

__all__ = ["SCHEMES", "Scheme", "SchemeOptions", "Secret", "Verified", "parse_secrets", "sign", "verify"]

#: Every scheme by the name a configuration gives it.
SCHEMES: Mapping[str, Scheme] = {scheme.name: scheme for scheme in (STANDARD_WEBHOOKS, STRIPE, HMAC_BODY)}

_DEFAULTS = SchemeOptions()


def verify(
    scheme: str,
    *,
    headers: Mapping[str, str],
    body: bytes,
    secrets: Sequence[Secret],
    now: datetime,
    options: SchemeOptions = _DEFAULTS,
) -> Verified:
    """Prove that a request came from its sender.

    Args:
        scheme: a name in `SCHEMES`.
        headers: by lower-case name; values as latin-1 text, any byte possible.
        body: the bytes on the wire, before any decoding.
        secrets: newest first, from `parse_secrets`; any of them may match, none matches where there are none.
        now: aware; the receiver's clock, or the time of receipt of a request that is checked again.
        options: what this sender does its own way.

    Returns:
        Which secret matched, and what the signed headers say.

    Raises:
        SignatureError: one of its children; the signature is judged before the time.
    """
    request = Incoming(headers=headers, body=body, secrets=secrets, now=now, options=options)
    return SCHEMES[scheme].verify(request)


def sign(
    scheme: str,
    *,
    secret: str,
    body: bytes,
    delivery_id: str,
    at: datetime,
    options: SchemeOptions = _DEFAULTS,
) -> dict[str, str]:
    """Return the headers that prove a body to its receiver.

    Args:
        scheme: a name in `SCHEMES`.
        secret: the secret's text, as a configuration holds it.
        body: the exact bytes that will be sent.
        delivery_id: the same on every try of one delivery; sent where the scheme has a place for it.
        at: aware; fresh on every try.
        options: what this receiver expects to be done its own way.

    Raises:
        ValueError: the secret or the delivery id cannot be used.
    """
    chosen = SCHEMES[scheme]
    if usable_delivery_id(delivery_id.encode("utf-8", "surrogatepass")) is None:
        raise ValueError("a delivery id is 1 to 255 visible ASCII characters")
    key = chosen.parse_secret(secret)
    return chosen.sign(Outgoing(secret=key, body=body, delivery_id=delivery_id, at=at, options=options))


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
