"""Statements on ``provider_accounts``: when an account may be asked again, and how often.

Lock order: an account before the jobs of its provider.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from jobs.core.states import OPEN
from jobs.storage.database import Transaction
from jobs.storage.jobs import DUE_COLUMNS, Row, is_free
from jobs.storage.schema import jobs, provider_accounts

_UNKNOWN: dict[str, Any] = {**{column.name: None for column in provider_accounts.c}, "probes": 0}


def find_account(tx: Transaction, name: str) -> Row:
    """What is known of an account; nothing is, until something happened to it."""
    row = tx.row(sa.select(provider_accounts).where(provider_accounts.c.name == name))
    return row or {**_UNKNOWN, "name": name}


def lock_account(tx: Transaction, name: str) -> Row:
    """The account, locked until the transaction ends, so that two claims cannot spend one budget."""
    tx.execute(tx.insert(provider_accounts).values(name=name).on_conflict_do_nothing())
    row = tx.row(sa.select(provider_accounts).where(provider_accounts.c.name == name).with_for_update())
    assert row is not None
    return row


def update_account(tx: Transaction, name: str, **changes: Any) -> None:
    """Writes an account that is locked."""
    tx.execute(sa.update(provider_accounts).where(provider_accounts.c.name == name).values(**changes))


def was_heard(tx: Transaction, provider: str, *, since: datetime) -> bool:
    """Whether a read or the submit of any open job of the provider was answered since then."""
    answered = sa.or_(jobs.c.polled_at > since, jobs.c.submitted_at > since)
    statement = sa.select(jobs.c.id).where(jobs.c.provider == provider, jobs.c.state.in_(sorted(OPEN)), answered)
    return tx.row(statement.limit(1)) is not None


def count_due(tx: Transaction, provider: str, *, most: int) -> int:
    """Work of a provider that is due and that nobody holds, counted no further than ``most``."""
    total = 0
    for column in DUE_COLUMNS.values():
        due_at = jobs.c[column]
        due = sa.select(jobs.c.id).where(
            jobs.c.provider == provider, due_at.is_not(None), due_at <= tx.now, is_free(tx.now)
        )
        total += tx.execute(sa.select(sa.func.count()).select_from(due.limit(most - total).subquery())).scalar_one()
    return total


def count_leases(tx: Transaction, provider: str) -> int:
    """Jobs of a provider that somebody works on, or has been told to."""
    # Only the leases are looked through: SQLite would rather go through every job of the provider.
    ours = sa.func.count().filter(jobs.c.provider == provider)
    statement = sa.select(ours).where(jobs.c.lease_until > tx.now)
    count: int = tx.execute(statement).scalar_one()
    return count
