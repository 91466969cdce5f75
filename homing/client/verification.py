"""Webhooks of ours, as their receiver reads them: proven first, then an event."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Protocol

from jobs.clock import SystemClock
from jobs.core import text
from jobs.core.errors import Malformed, Unusable
from jobs.core.events import Event

_SCHEME = "standard-webhooks"


class Headers(Protocol):
    """A request's headers: a dict, or what Flask, Django, Starlette or requests call headers."""

    def items(self) -> Iterable[tuple[str, str]]:
        """Names in any case, and values."""
        ...


def verify_webhook(body: bytes, headers: Headers, secret: str | Sequence[str], *, now: datetime | None = None) -> Event:
    """Prove that a webhook came from your fleet, and read it.

    Args:
        body: the bytes as they came, before any parsing.
        headers: of the request.
        secret: the endpoint's, `whsec_…`; while one is rotated, both.
        now: aware; default: this machine's clock. A signature's time may be five minutes off.

    Returns:
        The event. A repeat has the same `id`: keep the ids you have acted on.

    Raises:
        SignatureError: answer 403 and do nothing.
        ConfigError: a secret cannot be used; never quotes it.
    """
    from jobs.core.signatures import parse_secrets, verify  # noqa: PLC0415 - ten schemes and their cryptography

    texts = [secret] if isinstance(secret, str) else list(secret)
    verify(
        _SCHEME,
        headers={name.lower(): value for name, value in headers.items()},
        body=body,
        secrets=parse_secrets(_SCHEME, texts, where="secret"),
        now=now or SystemClock().now(),
    )
    return _read(body)


def _read(body: bytes) -> Event:
    try:
        document: Any = text.decode_json(body)
        return Event(
            id=document["id"],
            type=document["type"],
            schema_version=document["schema_version"],
            sequence=document["sequence"],
            position=document.get("position"),
            occurred_at=document["occurred_at"],
            tenant=document["tenant"],
            data=document["data"],
        )
    except (Unusable, KeyError, TypeError, AttributeError):
        raise Malformed("the body is signed, and no event") from None
