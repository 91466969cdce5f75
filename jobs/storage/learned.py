"""Statements on ``durations`` and ``provider_standings``: what the ends of jobs teach. One learner at a time writes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from jobs.storage.account_schema import durations, provider_standings
from jobs.storage.database import Transaction
from jobs.storage.jobs import Row
from jobs.storage.metadata import Instant
from jobs.storage.schema import artifacts, job_transitions, jobs

#: A kind of job that nobody has seen end for so many days is forgotten.
FORGET_DAYS = 90


def list_steps_after(tx: Transaction, row_id: int, *, until: datetime, limit: int) -> list[dict[str, Any]]:
    """History rows in their order, each with what its job's duration is told by.

    Args:
        tx: The open transaction.
        row_id: The last row seen.
        until: Ends at the first row that is younger.
        limit: Rows at most.
    """
    columns = (jobs.c.provider, jobs.c.model, jobs.c.adopt, jobs.c.submitted_at, jobs.c.polled_at)
    steps = job_transitions.c
    # A success that waits for its files was told when they were named.
    named_at = sa.select(sa.func.min(artifacts.c.created_at)).where(artifacts.c.job_id == jobs.c.id).scalar_subquery()
    told_at = sa.func.coalesce(named_at, steps.at, type_=Instant()).label("told_at")
    statement = (
        sa.select(steps.id, steps.job_id, steps.to_state, steps.source, steps.at, steps.applied, told_at, *columns)
        .join(jobs, jobs.c.id == steps.job_id)
        .where(steps.id > row_id)
        .order_by(steps.id)
        .limit(limit)
    )
    rows = tx.rows(statement)
    young = next((number for number, row in enumerate(rows) if row["at"] > until), len(rows))
    return rows[:young]


def find_samples(tx: Transaction, provider: str, model: str) -> list[float]:
    """Durations of the newest ends in seconds, oldest first."""
    mine = (durations.c.provider == provider, durations.c.model == model)
    row = tx.row(sa.select(durations.c.samples_s).where(*mine))
    return list(row["samples_s"]) if row else []


def put_samples(tx: Transaction, provider: str, model: str, samples_s: Sequence[float]) -> None:
    """Writes the samples of a kind of job."""
    row = {"provider": provider, "model": model, "samples_s": list(samples_s), "updated_at": tx.now}
    _upsert(tx, durations, row)


def forget_samples(tx: Transaction, before: datetime) -> None:
    """Forgets the kinds of job that have not been seen to end since."""
    tx.execute(sa.delete(durations).where(durations.c.updated_at < before))


def find_standing(tx: Transaction, provider: str) -> Row | None:
    """How a provider's jobs came home lately."""
    return tx.row(sa.select(provider_standings).where(provider_standings.c.provider == provider))


def list_standings(tx: Transaction) -> dict[str, Row]:
    """The same of every provider, by name."""
    return {row["provider"]: row for row in tx.rows(sa.select(provider_standings))}


def put_standing(tx: Transaction, provider: str, *, recent: Sequence[Any], degraded_at: datetime | None) -> None:
    """Writes how they did."""
    _upsert(tx, provider_standings, {"provider": provider, "recent": list(recent), "degraded_at": degraded_at})


def _upsert(tx: Transaction, table: sa.Table, row: Row) -> None:
    insert = sqlite.insert if tx.is_sqlite else postgresql.insert
    keys = [column.name for column in table.primary_key]
    changed = {name: value for name, value in row.items() if name not in keys}
    tx.execute(insert(table).values(dict(row)).on_conflict_do_update(index_elements=keys, set_=changed))
