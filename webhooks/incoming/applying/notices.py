"""What is handed on of an event that is of no job: the data of ``webhook.received``. Pure."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from jobs.core import instants
from jobs.core.events import EventType
from jobs.storage.jobs import Row
from jobs.storage.outbox import event_row
from webhooks.incoming.applying.work import Work
from webhooks.incoming.reading import json_or_none

#: A larger body is read from the inbox: every subscriber gets a copy of the event, and lists of events hold many.
MAX_BODY_BYTES = 1024 * 1024
_MAX_HEADER_CHARS = 1024
_MAX_HEADERS = 40
#: Where senders say what an event is. The rest is about the journey.
_TELLING = ("x-", "webhook-", "svix-", "stripe-", "ce-")
_JOURNEY = ("x-forwarded-", "x-real-ip", "x-request-id", "x-amzn-", "x-envoy-")
#: Proofs are the receiver's business, and a shared secret is no one's.
_PROOFS = ("signature", "hmac", "secret", "token", "authorization", "-key")


def notice_row(work: Work, *, at: datetime) -> Row:
    """The outbox row of an event that is handed on."""
    row = work.row
    data = {
        "provider": row["provider"],
        "delivery_id": row["delivery_id"],
        "inbox": work.id,
        "received_at": instants.to_text(row["received_at"]),
        "is_hint": work.is_hint,
        "headers": telling_headers(row["headers"]),
        **_content(work.body),
    }
    return event_row(EventType.WEBHOOK_RECEIVED, tenant=row["tenant"], at=at, data=data, provider=row["provider"])


def _content(body: bytes) -> dict[str, Any]:
    """The body as JSON where it is an object or a list, else as base64; a large one only says that it is."""
    if len(body) > MAX_BODY_BYTES:
        return {"body": None, "body_base64": None, "is_body_omitted": True}
    value = json_or_none(body)
    encoded = base64.b64encode(body).decode("ascii") if value is None else None
    return {"body": value, "body_base64": encoded, "is_body_omitted": False}


def telling_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that say what an event is: its type of content, and the sender's own but its proofs."""
    told = [name for name in sorted(headers) if name == "content-type" or _is_telling(name)]
    return {name: headers[name][:_MAX_HEADER_CHARS] for name in told[:_MAX_HEADERS]}


def _is_telling(name: str) -> bool:
    is_proof = any(word in name for word in _PROOFS)
    return name.startswith(_TELLING) and not name.startswith(_JOURNEY) and not is_proof
