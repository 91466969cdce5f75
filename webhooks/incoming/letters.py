"""Dead letters of kind ``inbox``: events that cannot be read, or that exhausted their tries."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from jobs.storage.database import Transaction
from jobs.storage.dead_letters import dead_letter

LETTER_KIND = "inbox"


def write_letter(
    tx: Transaction,
    event: Mapping[str, Any],
    *,
    reason: str,
    attempts: int = 1,
    first_failed_at: datetime | None = None,
) -> str:
    """Writes the dead letter of an event, or adds to its open one.

    Args:
        tx: The open transaction.
        event: Its columns, as far as they are known: ``id provider tenant digest delivery_id`` and perhaps ``job_id``.
        reason: Why it will not be applied by itself.
        attempts: How often that was tried.
        first_failed_at: When that began; now where absent.
    """
    return dead_letter(
        tx,
        LETTER_KIND,
        event["id"],
        reason=reason,
        attempts=attempts,
        tenant=event["tenant"],
        job_id=event.get("job_id"),
        evidence={name: event[name] for name in ("provider", "digest", "delivery_id")},
        first_failed_at=first_failed_at,
    )
