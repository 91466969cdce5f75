"""The values every signature scheme works on: what came in, what goes out, what may vary, what was found."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal

from jobs.core.errors import Malformed, Missing
from jobs.core.signatures.timestamps import Unit, check_fresh, parse_timestamp

Encoding = Literal["hex", "base64"]
#: Digests of a sender that lets its account choose (`cloudinary`).
Algorithm = Literal["sha1", "sha256"]

#: Longest delivery id worth remembering; a longer one counts as no id, so that no sender can fill a key.
MAX_DELIVERY_ID_CHARS = 255
_USABLE_ID = re.compile(rb"[\x21-\x7e]{1,%d}" % MAX_DELIVERY_ID_CHARS)


class KeyKind(StrEnum):
    """What the bytes of a secret are."""

    SHARED = "shared"  # both sides have it: it signs and verifies
    PUBLIC = "public"  # Ed25519: it only verifies
    PRIVATE = "private"  # Ed25519: it only signs


class Binding(StrEnum):
    """What a request that passed is proven to be."""

    BODY = "body"  # the body is its sender's, byte for byte
    SENDER = "sender"  # somebody who knows the secret sent it; the body may be anybody's
    NOTHING = "nothing"  # the scheme checks nothing; whoever uses it needs another proof


@dataclass(frozen=True, slots=True)
class Secret:
    """One secret as the bytes its algorithm takes. Never shown: not by `repr`, not in a log."""

    key: bytes = field(repr=False)
    kind: KeyKind = KeyKind.SHARED

    @property
    def can_sign(self) -> bool:
        """Whether a signature can be made with it."""
        return self.kind is not KeyKind.PUBLIC


@dataclass(frozen=True, slots=True)
class SchemeOptions:
    """What an adapter or a configuration may set about a scheme. One object serves every scheme.

    Each scheme names those it reads (`Scheme.reads`); what is None is as the scheme has it.

    Attributes:
        tolerance: how far a signed timestamp may be from our clock, either way.
        timestamp_unit: what the sender counts in, `s` or `ms`.
        header: the signature's header.
        timestamp_header: the timestamp's header (`hmac-timestamp-body`).
        prefix: what stands before the digest, in any case.
        encoding: how the digest is written; a sender uses one, so the other is refused.
        algorithm: the digest of an account that may choose (`cloudinary`).
        delivery_id_header: where the delivery id is, for a scheme without a place of its own.
    """

    tolerance: timedelta | None = None
    timestamp_unit: Unit = "s"
    header: str | None = None
    timestamp_header: str | None = None
    prefix: str | None = None
    encoding: Encoding = "hex"
    algorithm: Algorithm = "sha1"
    delivery_id_header: str | None = None

    def __post_init__(self) -> None:
        """Refuse what no sender could mean."""
        if self.tolerance is not None and self.tolerance <= timedelta(0):
            raise ValueError("tolerance must be longer than zero")
        if self.timestamp_unit not in ("s", "ms"):
            raise ValueError("timestamp_unit must be 's' or 'ms'")
        if self.encoding not in ("hex", "base64"):
            raise ValueError("encoding must be 'hex' or 'base64'")
        if self.algorithm not in ("sha1", "sha256"):
            raise ValueError("algorithm must be 'sha1' or 'sha256'")


@dataclass(frozen=True, slots=True)
class Verified:
    """Proof that a request came from its sender.

    Attributes:
        secret_index: which of the secrets matched, 0 = newest; -1 where the scheme has none.
        delivery_id: the sender's id for this delivery, where the scheme carries a usable one.
        signed_at: when the sender says it signed, where the scheme says so.
    """

    secret_index: int
    delivery_id: str | None
    signed_at: datetime | None


@dataclass(frozen=True, slots=True)
class Incoming:
    """A request to verify.

    Attributes:
        headers: by lower-case name, values as WSGI hands them over (latin-1 text).
        url: as the sender called it, query included; only `twilio` signs it.
    """

    headers: Mapping[str, str]
    body: bytes
    secrets: Sequence[Secret]
    now: datetime
    options: SchemeOptions
    url: str = ""

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

    def parse_stamp(self, stamp: bytes) -> Callable[[timedelta], datetime]:
        """Read a timestamp; what is returned judges it by a tolerance, and is called once the signature is proven.

        Raises:
            Malformed: it is not a whole number.
        """
        number = parse_timestamp(stamp)
        options = self.options
        return lambda usual: check_fresh(
            number, now=self.now, unit=options.timestamp_unit, tolerance=options.tolerance or usual
        )


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request to sign; `url` as it will be called, query included."""

    secret: Secret
    body: bytes
    delivery_id: str
    at: datetime
    options: SchemeOptions
    url: str = ""


@dataclass(frozen=True, slots=True)
class Scheme:
    """A way to sign.

    Attributes:
        parse_secret: reads the secret a receiver has; raises `ValueError` whose text names the fault, never the
            secret.
        verify: raises only `SignatureError`, whatever comes in.
        sign: the headers to send.
        parse_signing_secret: reads the secret a sender has, where that is another one.
        binds: what a request that passed is proven to be.
        reads: the names of the options it reads.
        takes_secrets: whether a configuration gives it any.
        key_set_url: where its public keys are published; a configured secret takes their place.
        credential_header: the header, by lower-case name, whose value is itself the secret and must not be shown.
    """

    name: str
    parse_secret: Callable[[str], Secret]
    verify: Callable[[Incoming], Verified]
    sign: Callable[[Outgoing], dict[str, str]]
    parse_signing_secret: Callable[[str], Secret] | None = None
    binds: Binding = Binding.BODY
    reads: frozenset[str] = frozenset()
    takes_secrets: bool = True
    key_set_url: str | None = None
    credential_header: Callable[[SchemeOptions], str | None] = lambda _options: None

    @property
    def is_hint(self) -> bool:
        """Whether a request only says "look", because nothing proves its body."""
        return self.binds is not Binding.BODY


#: How far a signed timestamp may be from our clock where neither scheme nor configuration says otherwise.
USUAL_TOLERANCE = timedelta(seconds=300)
#: Options of every scheme that signs a timestamp.
TIMED = frozenset({"tolerance", "timestamp_unit"})


def usable_delivery_id(raw: bytes) -> str | None:
    """Return a delivery id worth deduplicating by: 1 to 255 visible ASCII characters; else none."""
    return raw.decode("ascii") if _USABLE_ID.fullmatch(raw) else None
