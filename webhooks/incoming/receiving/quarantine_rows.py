"""Statements on the quarantine: keep a few, forget the rest, hand out to a recheck."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from jobs.storage.database import Transaction
from webhooks.incoming.schema import quarantined_requests

#: Per provider: a day of a busy sender's refusals, and no more than anybody may fill by sending junk.
MAX_ROWS = 500
MAX_BYTES = 8 * 2**20
#: A weekend: as long as a wrong secret may stay unnoticed. Providers' own retries last about as long.
MAX_AGE = timedelta(days=3)

_table = quarantined_requests.c


@dataclass(frozen=True, slots=True)
class Refused:
    """A refused request; the columns have the same names."""

    id: str
    provider: str
    token: str | None
    target: str
    headers: Mapping[str, str]
    raw: bytes
    size_bytes: int
    reason: str
    received_at: datetime


def insert_refused(tx: Transaction, refused: Sequence[Refused]) -> None:
    """Keeps some, and lets go of the oldest of each provider that has too many, and of all that are too old."""
    tx.execute(sa.insert(quarantined_requests), [asdict(each) for each in refused])
    drop_old(tx)
    for provider in sorted({each.provider for each in refused}):
        _drop_surplus(tx, provider)


def drop_old(tx: Transaction) -> None:
    """Lets go of what is too old."""
    tx.execute(sa.delete(quarantined_requests).where(_table.received_at < tx.now - MAX_AGE))


def list_refused(tx: Transaction, provider: str, *, after: str, limit: int) -> list[dict[str, Any]]:
    """A provider's refused requests, oldest first."""
    statement = sa.select(quarantined_requests).where(_table.provider == provider, _table.id > after)
    return tx.rows(statement.order_by(_table.id).limit(limit))


def take_refused(tx: Transaction, ids: Sequence[str]) -> set[str]:
    """Takes rows out for good; returns the ids of those that nobody else took first."""
    statement = sa.delete(quarantined_requests).where(_table.id.in_(ids)).returning(_table.id)
    return {row.id for row in tx.execute(statement)}


def _drop_surplus(tx: Transaction, provider: str) -> None:
    newest_first = _table.id.desc()
    counted = (
        sa.select(
            _table.id,
            sa.func.row_number().over(order_by=newest_first).label("place"),
            sa.func.sum(_table.size_bytes).over(order_by=newest_first).label("bytes"),
        )
        .where(_table.provider == provider)
        .subquery()
    )
    surplus = sa.select(counted.c.id).where(sa.or_(counted.c.place > MAX_ROWS, counted.c.bytes > MAX_BYTES))
    tx.execute(sa.delete(quarantined_requests).where(_table.id.in_(surplus)))
