"""Statements on ``provider_accounts`` and counts over it, for people: pausing, and how an account is doing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from jobs.storage.database import Transaction
from jobs.storage.schema import job_transitions, jobs, provider_accounts


def set_paused(tx: Transaction, name: str, paused_at: datetime | None) -> None:
    """Pauses an account, or resumes it with None; a pause keeps the instant it began."""
    insert = sqlite.insert if tx.is_sqlite else postgresql.insert
    column = provider_accounts.c.paused_at
    kept = sa.func.coalesce(column, paused_at) if paused_at is not None else sa.null()
    statement = insert(provider_accounts).values(name=name, paused_at=paused_at)
    tx.execute(
        statement.on_conflict_do_update(index_elements=["name"], set_={"paused_at": sa.type_coerce(kept, column.type)})
    )


def list_accounts(tx: Transaction) -> dict[str, Mapping[str, Any]]:
    """What is known of each account that was ever paused or asked to wait."""
    return {row["name"]: row for row in tx.rows(sa.select(provider_accounts))}


def count_jobs(tx: Transaction) -> list[dict[str, Any]]:
    """Jobs by provider, tenant and state."""
    columns = (jobs.c.provider, jobs.c.tenant, jobs.c.state)
    return tx.rows(sa.select(*columns, sa.func.count().label("count")).group_by(*columns))


def count_homecomings(tx: Transaction, *, tenant: str | None = None) -> list[dict[str, Any]]:
    """Jobs that came home, by provider and by whose word it was."""
    columns = (jobs.c.provider, job_transitions.c.source)
    ended = sa.and_(job_transitions.c.applied, job_transitions.c.to_state.in_(("succeeded", "failed", "canceled")))
    statement = (
        sa.select(*columns, sa.func.count().label("count"))
        .join(jobs, jobs.c.id == job_transitions.c.job_id)
        .where(ended)
        .group_by(*columns)
    )
    return tx.rows(statement if tenant is None else statement.where(jobs.c.tenant == tenant))
