"""Statements on ``alarms``: each is raised once, whoever notices, and ended once."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from jobs.storage.database import Transaction
from jobs.storage.letter_schema import alarms


def raised_since(tx: Transaction, name: str) -> datetime | None:
    """Since when an alarm is raised; None while it is quiet."""
    row = tx.row(sa.select(alarms.c.raised_at).where(alarms.c.name == name))
    return row["raised_at"] if row else None


def raise_alarm(tx: Transaction, name: str) -> bool:
    """Raises an alarm; False where it is raised."""
    tx.execute(tx.insert(alarms).values(name=name, changed_at=tx.now).on_conflict_do_nothing())
    return _change(tx, name, alarms.c.raised_at.is_(None), tx.now)


def end_alarm(tx: Transaction, name: str) -> bool:
    """Ends an alarm; False where it is quiet."""
    return _change(tx, name, alarms.c.raised_at.is_not(None), None)


def _change(tx: Transaction, name: str, premise: sa.ColumnElement[bool], raised_at: datetime | None) -> bool:
    statement = sa.update(alarms).where(alarms.c.name == name, premise)
    return tx.execute(statement.values(raised_at=raised_at, changed_at=tx.now)).rowcount == 1
