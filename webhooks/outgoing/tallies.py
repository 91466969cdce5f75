"""Ages of deliveries, for people and for monitoring."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from jobs.storage.database import Transaction
from webhooks.outgoing.schema import endpoints


def oldest_delivery(tx: Transaction) -> datetime | None:
    """Since when the endpoint that has waited longest could have been sent something."""
    due_at = endpoints.c.next_send_at
    row = tx.row(sa.select(sa.func.min(due_at).label("due_at")).where(due_at.is_not(None), due_at <= tx.now))
    return row["due_at"] if row else None
