"""Counts and ages of the inbox, for people and for monitoring."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from jobs.storage.database import Transaction
from webhooks.incoming.schema import InboxStatus, inbox_events


def count_events(tx: Transaction) -> list[dict[str, Any]]:
    """Received events by what became of them."""
    status = inbox_events.c.status
    return tx.rows(sa.select(status, sa.func.count().label("count")).group_by(status))


def count_parked(tx: Transaction) -> int:
    """Events of runs nobody knows; from the index of their status."""
    is_parked = inbox_events.c.status == InboxStatus.PARKED
    return int(tx.execute(sa.select(sa.func.count()).where(is_parked)).scalar_one())


def oldest_webhook(tx: Transaction) -> datetime | None:
    """When the longest due webhook should have been applied."""
    due_at = inbox_events.c.next_try_at
    row = tx.row(sa.select(sa.func.min(due_at).label("due_at")).where(due_at.is_not(None), due_at <= tx.now))
    return row["due_at"] if row else None
