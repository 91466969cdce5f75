"""A claimed event and what its bytes say, ready to be applied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobs.core.errors import TooLarge
from jobs.core.observations import Evidence, Observation, Source
from jobs.core.signatures import SCHEMES
from jobs.services.reports import observation_of as observe_report
from jobs.services.runtime import Runtime
from webhooks.incoming.applying.owners import Claim, Owner
from webhooks.incoming.body import decode_body
from webhooks.incoming.reading import Reading, read_event
from webhooks.incoming.schema import InboxStatus


@dataclass(frozen=True, slots=True)
class Work:
    """A claimed row of the inbox.

    Attributes:
        row: As claimed, without its body.
        reading: What the body says; None where this process does not know the provider.
        claim: Whose event it says it is; None where that does not matter.
        is_hint: Whether it, or any event of its provider, only says "look".
        body: Decoded, where it will be handed on.
    """

    row: Mapping[str, Any]
    reading: Reading | None
    claim: Claim | None = None
    is_hint: bool = False
    body: bytes = b""

    @property
    def id(self) -> str:
        """The event's id."""
        return str(self.row["id"])

    @property
    def is_notice(self) -> bool:
        """Whether it is handed on as it is."""
        return self.reading is not None and self.reading.is_notice


def read_work(runtime: Runtime, row: Mapping[str, Any], raw: bytes) -> Work:
    """Reads a stored event as its receiver did."""
    entry = runtime.providers.get(row["provider"])
    if entry is None:
        return Work(row, None)
    # A limit lowered since must not lose what was accepted under the old one.
    limit_bytes = max(runtime.settings.webhook_max_bytes, len(raw))
    try:
        reading = read_event(entry.adapter, raw, row["headers"], limit_bytes=limit_bytes)
    except TooLarge as error:
        reading = Reading(InboxStatus.QUARANTINED, error.detail)
    is_hint = entry.adapter.capabilities.webhook_is_hint or reading.is_hint or _is_unbound(row["scheme"])
    body = decode_body(raw, row["headers"], limit_bytes=limit_bytes) if reading.is_notice else b""
    return Work(row, reading, _claim(row, reading), is_hint, body)


def _claim(row: Mapping[str, Any], reading: Reading) -> Claim | None:
    if reading.status is not InboxStatus.ACCEPTED or reading.is_notice:
        return None
    return Claim(row["provider"], reading.provider_job_id, row["token"])


def _is_unbound(scheme: str) -> bool:
    """Whether what proved an event says nothing of its body; so does a scheme this process does not know."""
    return scheme not in SCHEMES or SCHEMES[scheme].is_hint


def observation_of(work: Work, owner: Owner, *, now: datetime) -> Observation:
    """The event as what it teaches us about its job, now: a job's history stays in the order of its instants."""
    report = work.reading.report if work.reading else None
    assert report is not None, "only an accepted event has an owner"
    return observe_report(
        report,
        source=Source.WEBHOOK,
        at=now,
        attempt=owner.attempt,
        evidence=Evidence(event_id=work.id, digest=work.row["digest"]),
    )


def only_run_of(seen: Observation) -> Observation:
    """What a hint teaches beside "look": that its attempt has this run."""
    return Observation(
        source=seen.source,
        at=seen.at,
        attempt=seen.attempt,
        provider_job_id=seen.provider_job_id,
        evidence=seen.evidence,
    )
