"""The values every signature scheme works on: what came in, what goes out, what may vary, what was found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from jobs.core.errors import Malformed, Missing
from jobs.core.signatures.timestamps import Unit

Encoding = Literal["hex", "base64"]

#: Longest delivery id worth remembering; a longer one counts as no id, so that no sender can fill a key.
MAX_DELIVERY_ID_CHARS = 255


@dataclass(frozen=True, slots=True)
class Secret:
    """One shared secret as the bytes an HMAC takes. Never shown: not by `repr`, not in a log."""

    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class SchemeOptions:
    """What an adapter or a configuration may set about a scheme. One object serves every scheme.

    Attributes:
        tolerance: how far a signed timestamp may be from our clock, either way.
        timestamp_unit: what the sender counts in, `s` or `ms`.
        header: the signature's header, instead of the scheme's own (`webhook_header`; `stripe`, `hmac-body`).
        prefix: what stands before the digest, in any case (`hmac-body`).
        encoding: how the digest is written; a sender uses one, so the other is refused (`hmac-body`).
        delivery_id_header: where the delivery id is, for a scheme without a place of its own (`hmac-body`).
    """

    tolerance: timedelta = timedelta(seconds=300)
    timestamp_unit: Unit = "s"
    header: str | None = None
    prefix: str = "sha256="
    encoding: Encoding = "hex"
    delivery_id_header: str | None = None

    def __post_init__(self) -> None:
        """Refuse what no sender could mean."""
        if self.tolerance <= timedelta(0):
            raise ValueError("tolerance must be longer than zero")
        if self.timestamp_unit not in ("s", "ms"):
            raise ValueError("timestamp_unit must be 's' or 'ms'")
        if self.encoding not in ("hex", "base64"):
            raise ValueError("encoding must be 'hex' or 'base64'")


@dataclass(frozen=True, slots=True)
class Verified:
    """Proof that a request came from its sender.

    Attributes:
        secret_index: which of the secrets matched, 0 = newest.
        delivery_id: the sender's id for this delivery, where the scheme carries a usable one.
        signed_at: when the sender says it signed, where the scheme says so.
    """

    secret_index: int
    delivery_id: str | None
    signed_at: datetime | None


@dataclass(frozen=True, slots=True)
class Incoming:
    """A request to verify: headers by lower-case name, values as WSGI hands them over (latin-1 text)."""

    headers: Mapping[str, str]
    body: bytes
    secrets: Sequence[Secret]
    now: datetime
    options: SchemeOptions

    def header(self, name: str) -> bytes:
        """Return a header's bytes as they were on the wire, without outer blanks.

        Raises:
            Missing: it is absent or blank.
            Malformed: it holds characters no header can have carried.
        """
        try:
            value = self.headers.get(name.lower(), "").encode("latin-1").strip(b" \t")
        except UnicodeEncodeError:
            raise Malformed("a header is not latin-1") from None
        if not value:
            raise Missing
        return value


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request to sign."""

    secret: Secret
    body: bytes
    delivery_id: str
    at: datetime
    options: SchemeOptions


@dataclass(frozen=True, slots=True)
class Scheme:
    """A way to sign.

    Attributes:
        parse_secret: reads a secret's text; raises `ValueError` whose text names the fault, never the secret.
        verify: raises only `SignatureError`, whatever comes in.
        sign: the headers to send.
    """

    name: str
    parse_secret: Callable[[str], Secret]
    verify: Callable[[Incoming], Verified]
    sign: Callable[[Outgoing], dict[str, str]]


def usable_delivery_id(raw: bytes) -> str | None:
    """Return a delivery id worth deduplicating by: 1 to 255 visible ASCII characters; else none."""
    if 0 < len(raw) <= MAX_DELIVERY_ID_CHARS and all(0x21 <= byte <= 0x7E for byte in raw):
        return raw.decode("ascii")
    return None
