"""Statements over ``api_keys``. Only digests are stored: a stolen database opens no door."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import RowMapping

from jobs.storage.database import Transaction
from jobs.storage.schema import api_keys


def insert_key(tx: Transaction, row: dict[str, Any]) -> None:
    """Writes a new key's row."""
    tx.execute(api_keys.insert().values(**row))


def find_live_key(tx: Transaction, digest: str) -> RowMapping | None:
    """The row of a key that has not been revoked."""
    statement = sa.select(api_keys).where(api_keys.c.digest == digest, api_keys.c.revoked_at.is_(None))
    return tx.execute(statement).mappings().one_or_none()


def find_live_key_by_id(tx: Transaction, key_id: str) -> RowMapping | None:
    """The row of a key that has not been revoked, by the id that may be shown."""
    statement = sa.select(api_keys).where(api_keys.c.id == key_id, api_keys.c.revoked_at.is_(None))
    return tx.execute(statement).mappings().one_or_none()


def list_keys(tx: Transaction) -> Sequence[RowMapping]:
    """Every key ever made, oldest first; made by hand, so there are few."""
    return tx.execute(sa.select(api_keys).order_by(api_keys.c.id)).mappings().all()


def mark_revoked(tx: Transaction, key_id: str) -> bool:
    """Revokes a live key; False where there is none of that id."""
    statement = (
        api_keys.update().where(api_keys.c.id == key_id, api_keys.c.revoked_at.is_(None)).values(revoked_at=tx.now)
    )
    return tx.execute(statement).rowcount == 1
