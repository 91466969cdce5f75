"""What an event says, read the same way at the door and when it is applied. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jobs.core.errors import Unusable
from jobs.core.observations import Json
from jobs.core.text import decode_clean_json
from jobs.providers.port import Provider, Report, WebhookReport
from webhooks.incoming.body import decode_body
from webhooks.incoming.schema import InboxStatus

#: A run's id is a key in our database; a longer text is none.
_MAX_RUN_ID_CHARS = 255
_MAX_DELIVERY_ID_CHARS = 255
_MAX_TOKEN_CHARS = 255


@dataclass(frozen=True, slots=True)
class Reading:
    """What an event says.

    Attributes:
        status: ``accepted`` (it may matter), ``ignored`` or ``quarantined``.
        reason: Why it is not accepted.
        report: What it says of a run; only where accepted.
        delivery_id: The body's own id for the delivery, where it has a usable one.
        token: The attempt's token, where the body carries it.
        is_hint: Whether this very event only says "look".
        is_notice: Whether it is of no job and is handed on as it is.
    """

    status: InboxStatus
    reason: str | None = None
    report: Report | None = None
    delivery_id: str | None = None
    token: str | None = None
    is_hint: bool = False
    is_notice: bool = False

    @property
    def provider_job_id(self) -> str | None:
        """The run it speaks of."""
        return self.report.provider_job_id if self.report else None

    @property
    def claim(self) -> str | None:
        """The state it claims, in our word or in the provider's own."""
        return (self.report.state or self.report.unknown_status) if self.report else None


def read_event(adapter: Provider, raw: bytes, headers: Mapping[str, str], *, limit_bytes: int) -> Reading:
    """Reads the bytes on the wire as an event.

    Args:
        adapter: Of the provider they came from.
        raw: As received.
        headers: By lower-case name.
        limit_bytes: Of the decoded body.

    Raises:
        TooLarge: Decoded, it is longer than the limit.
    """
    try:
        body = decode_body(raw, headers, limit_bytes=limit_bytes)
        if adapter.capabilities.receives_only:
            return _read_notice(adapter, body, headers)
        # The escaped U+0000 and the half surrogate stay in the stored bytes; what is applied has U+FFFD instead.
        return _read(adapter, decode_clean_json(body), headers)
    except Unusable as error:
        return Reading(InboxStatus.QUARANTINED, error.reason)


def _read(adapter: Provider, body: object, headers: Mapping[str, str]) -> Reading:
    said = _said(adapter, body, headers)
    delivery_id = said.delivery_id if _is_text(said.delivery_id, _MAX_DELIVERY_ID_CHARS) else None
    if said.report is None:
        return Reading(InboxStatus.IGNORED, said.ignored_because or "of no interest", delivery_id=delivery_id)
    if said.report.provider_job_id is not None and not _is_text(said.report.provider_job_id, _MAX_RUN_ID_CHARS):
        raise Unusable(f"the job's id is not a text of 1 to {_MAX_RUN_ID_CHARS} characters")
    token = said.token if _is_text(said.token, _MAX_TOKEN_CHARS) else None
    return Reading(InboxStatus.ACCEPTED, report=said.report, delivery_id=delivery_id, token=token, is_hint=said.is_hint)


def _read_notice(adapter: Provider, body: bytes, headers: Mapping[str, str]) -> Reading:
    """Any body will do: it is its receivers who must understand it."""
    said = _said(adapter, json_or_none(body), headers)
    if said.ignored_because is not None:
        return Reading(InboxStatus.IGNORED, said.ignored_because)
    delivery_id = said.delivery_id if _is_text(said.delivery_id, _MAX_DELIVERY_ID_CHARS) else None
    return Reading(InboxStatus.ACCEPTED, delivery_id=delivery_id, is_notice=True)


def json_or_none(body: bytes) -> Json:
    """The JSON object or list that a body is; None where it is a form, a text or anything else."""
    try:
        value = decode_clean_json(body)
    except Unusable:
        return None
    return value if isinstance(value, dict | list) else None


def _said(adapter: Provider, body: Json | object, headers: Mapping[str, str]) -> WebhookReport:
    try:
        return adapter.read_webhook(body, headers)  # type: ignore[arg-type] # what JSON decodes to is Json
    except Unusable:
        raise
    except Exception as error:
        raise Unusable(f"the adapter could not read it ({type(error).__name__})") from error


def _is_text(value: object, longest: int) -> bool:
    return isinstance(value, str) and 0 < len(value) <= longest
