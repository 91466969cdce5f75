"""The lists a person reads: bounded, filtered, each continued after the last row it showed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from jobs.storage.database import Transaction
from jobs.storage.letter_filter import LetterFilter, conditions_of
from jobs.storage.schema import dead_letters, job_transitions, jobs, outbox


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs: each filter that is set must hold.

    Attributes:
        review: True: those that wait for a person; False: those that do not.
        review_reason: Those that wait for this reason.
        metadata: Values of the job's metadata, compared as text.
    """

    state: str | None = None
    provider: str | None = None
    review: bool | None = None
    review_reason: str | None = None
    created_after: datetime | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)


def list_jobs(
    tx: Transaction, *, tenant: str, wanted: JobFilter, before: str | None, limit: int
) -> list[dict[str, Any]]:
    """A tenant's jobs, newest first."""
    conditions = [jobs.c.tenant == tenant, *_job_conditions(tx, wanted)]
    if before is not None:
        conditions.append(jobs.c.id < before)
    return tx.rows(sa.select(jobs).where(*conditions).order_by(jobs.c.id.desc()).limit(limit))


def list_transitions_after(tx: Transaction, job_id: str, *, after: int, limit: int) -> list[dict[str, Any]]:
    """A job's history, oldest first."""
    columns = job_transitions.c
    conditions = (columns.job_id == job_id, columns.id > after)
    return tx.rows(sa.select(job_transitions).where(*conditions).order_by(columns.id).limit(limit))


def list_events(
    tx: Transaction,
    *,
    tenant: str,
    with_fleet: bool,
    type_pattern: str | None,
    job_id: str | None,
    after: int,
    limit: int,
) -> list[dict[str, Any]]:
    """Events in the order of their positions; an event without one is not in the list yet.

    Args:
        tx: The open transaction.
        tenant: Whose events.
        with_fleet: Also events that belong to no tenant.
        type_pattern: A type, or a part of one and ``*``.
        job_id: Only this job's.
        after: Only those after this position.
        limit: How many at most.
    """
    conditions = [outbox.c.position > after, owned_by(outbox.c.tenant, tenant, with_fleet)]
    if type_pattern is not None:
        conditions.append(_is_type(type_pattern))
    if job_id is not None:
        conditions.append(outbox.c.job_id == job_id)
    return tx.rows(sa.select(outbox).where(*conditions).order_by(outbox.c.position).limit(limit))


def list_dead_letters(
    tx: Transaction,
    *,
    tenant: str,
    with_fleet: bool,
    wanted: LetterFilter,
    before: str | None,
    limit: int,
) -> list[dict[str, Any]]:
    """Dead letters, newest first."""
    columns = dead_letters.c
    conditions = [owned_by(columns.tenant, tenant, with_fleet), *conditions_of(wanted)]
    if before is not None:
        conditions.append(columns.id < before)
    return tx.rows(sa.select(dead_letters).where(*conditions).order_by(columns.id.desc()).limit(limit))


def find_versions(tx: Transaction, job_ids: list[str]) -> dict[str, int]:
    """The versions of some jobs, in one query."""
    statement = sa.select(jobs.c.id, jobs.c.version).where(jobs.c.id.in_(job_ids))
    return {row["id"]: row["version"] for row in tx.rows(statement)}


def owned_by(column: sa.ColumnElement[Any], tenant: str, with_fleet: bool) -> sa.ColumnElement[bool]:
    """The tenant's rows; with the fleet's, also those that belong to no tenant."""
    return sa.or_(column == tenant, column.is_(None)) if with_fleet else column == tenant


def _is_type(pattern: str) -> sa.ColumnElement[bool]:
    if not pattern.endswith("*"):
        return outbox.c.type == pattern
    return outbox.c.type.startswith(pattern.removesuffix("*"), autoescape=True)


def _job_conditions(tx: Transaction, wanted: JobFilter) -> list[sa.ColumnElement[bool]]:
    columns = jobs.c
    conditions = [
        columns[name] == value
        for name, value in (
            ("state", wanted.state),
            ("provider", wanted.provider),
            ("review_reason", wanted.review_reason),
        )
        if value is not None
    ]
    if wanted.review is not None:
        waits = columns.review_reason.is_not(None)
        conditions.append(waits if wanted.review else ~waits)
    if wanted.created_after is not None:
        conditions.append(columns.created_at > wanted.created_after)
    return conditions + [_has_metadata(tx, key, value) for key, value in wanted.metadata.items()]


def _has_metadata(tx: Transaction, key: str, value: str) -> sa.ColumnElement[bool]:
    """Whether the metadata's value reads so as text; PostgreSQL says true where SQLite's JSON says 1."""
    return (_sqlite_text(key) if tx.is_sqlite else jobs.c.metadata[key].as_string()) == value


def _sqlite_text(key: str) -> sa.ColumnElement[str]:
    path = f'$."{key}"'
    kind: sa.ColumnElement[str] = sa.func.json_type(jobs.c.metadata, path)
    plain = sa.cast(sa.func.json_extract(jobs.c.metadata, path), sa.Text)
    return sa.case((kind.in_(("true", "false")), kind), else_=plain)
