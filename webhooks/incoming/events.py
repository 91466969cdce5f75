"""An authentic event on its way into the inbox: what is stored of it, and how its repeats are told. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from jobs.core.signatures.scheme import Verified
from jobs.core.text import clean
from webhooks.incoming.credentials import shown_headers
from webhooks.incoming.reading import Reading
from webhooks.incoming.schema import InboxStatus


@dataclass(frozen=True, slots=True)
class NewEvent:
    """A row of the inbox in the making; the columns of ``inbox_events`` have the same names."""

    id: str
    provider: str
    tenant: str | None
    delivery_id: str | None
    dedupe_key: str
    token: str | None
    scheme: str
    secret_index: int
    raw: bytes
    headers: Mapping[str, str]
    digest: str
    fact: str | None
    provider_job_id: str | None
    status: InboxStatus
    reason: str | None

    @property
    def key(self) -> tuple[str, str]:
        """What makes it the same delivery as another."""
        return self.provider, self.dedupe_key

    def as_conflict(self, *, known_id: str) -> NewEvent:
        """The same event as a row beside the one it contradicts; its own repeats meet it again."""
        key = "conflict:" + _hash(self.dedupe_key, self.fact or self.digest)
        reason = f"the delivery id was used before, by {known_id}, for another job or state"
        return replace(self, dedupe_key=key, status=InboxStatus.CONFLICT, reason=reason)


@dataclass(frozen=True, slots=True)
class KnownEvent:
    """A row of the inbox, as far as its repeats are concerned."""

    id: str
    digest: str
    fact: str | None

    def is_repeated_by(self, event: NewEvent) -> bool:
        """Same delivery id: the same bytes, or at least the same claim about the same run."""
        return self.digest == event.digest or self.fact == event.fact


@dataclass(frozen=True, slots=True)
class Stored:
    """A committed row, and what to answer for it.

    Attributes:
        known: The row a repeat would meet; None where the answer was ``conflict``.
        is_new: Whether this call wrote it.
    """

    status: str
    event_id: str
    known: KnownEvent | None
    is_new: bool


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an event came from, and what proved it.

    Attributes:
        credential_header: The header, by lower-case name, whose value is the secret itself.
    """

    provider: str
    tenant: str | None
    token: str | None
    scheme: str
    verified: Verified
    credential_header: str | None = None


def new_event(event_id: str, origin: Origin, *, raw: bytes, headers: Mapping[str, str], reading: Reading) -> NewEvent:
    """Puts a row together.

    Args:
        event_id: A fresh ``evt_…``.
        origin: Where it came from.
        raw: The bytes on the wire.
        headers: By lower-case name.
        reading: What the bytes say.
    """
    digest = hashlib.sha256(raw).hexdigest()
    token = reading.token if origin.token is None else clean(origin.token)
    about = reading.provider_job_id or token
    delivery_id = origin.verified.delivery_id or reading.delivery_id
    return NewEvent(
        id=event_id,
        provider=origin.provider,
        tenant=origin.tenant,
        delivery_id=delivery_id,
        dedupe_key=_dedupe_key(event_id, delivery_id, reading, about=token or about, digest=digest),
        token=token,
        scheme=origin.scheme,
        secret_index=origin.verified.secret_index,
        raw=raw,
        headers=shown_headers(headers, credential_header=origin.credential_header),
        digest=digest,
        fact=json.dumps([about, str(reading.claim)]) if reading.report else None,
        provider_job_id=reading.provider_job_id,
        status=reading.status,
        reason=reading.reason,
    )


def _dedupe_key(event_id: str, delivery_id: str | None, reading: Reading, *, about: str | None, digest: str) -> str:
    """The delivery's id, where there is one; an unusable body never takes the place of a later, usable one."""
    if reading.is_notice and delivery_id is None:
        return "event:" + event_id  # two equal bodies may be two events: only its sender could tell
    if delivery_id is None or reading.status is InboxStatus.QUARANTINED:
        return "body:" + _hash(about or "", digest)
    return "id:" + delivery_id


def _hash(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
