"""Statements on ``job_attempts``: one row per submit of a job, with its key and its callback token."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from jobs.core.errors import NotFound
from jobs.ids import new_id, new_token
from jobs.storage.bulk import select_rows, update_rows
from jobs.storage.database import Transaction
from jobs.storage.jobs import Row
from jobs.storage.schema import job_attempts


def insert_attempt(
    tx: Transaction, *, job_id: str, provider: str, number: int, at: datetime, beyond_budget: bool = False
) -> Row:
    """Opens an attempt with a key and a token of its own (I6).

    Args:
        tx: The open transaction.
        job_id: The job.
        provider: Its provider entry.
        number: From 1.
        at: Now.
        beyond_budget: A person wants it sent whatever the budget says.
    """
    row = {
        "id": new_id("att", at=at),
        "job_id": job_id,
        "number": number,
        "provider": provider,
        "idempotency_key": f"homing-{new_token()}",
        "token": new_token(),
        "tries": 0,
        "asks": 0,
        "beyond_budget": beyond_budget,
        "created_at": at,
    }
    tx.execute(sa.insert(job_attempts).values(row))
    return {**dict.fromkeys(column.name for column in job_attempts.c), **row}


def get_attempt(tx: Transaction, job_id: str, number: int) -> Row:
    """One attempt of a job.

    Raises:
        NotFound: The job has no such attempt.
    """
    row = _one(tx, job_attempts.c.job_id == job_id, job_attempts.c.number == number)
    if row is None:
        raise NotFound(f"job {job_id} has no attempt {number}")
    return row


def find_attempt_by_token(tx: Transaction, provider: str, token: str) -> Row | None:
    """The attempt a callback URL belongs to."""
    return _one(tx, job_attempts.c.provider == provider, job_attempts.c.token == token)


def find_attempt_by_run(tx: Transaction, provider: str, provider_job_id: str) -> Row | None:
    """The attempt that owns a run."""
    return _one(tx, job_attempts.c.provider == provider, job_attempts.c.provider_job_id == provider_job_id)


def update_attempt(
    tx: Transaction, attempt_id: str, changes: Mapping[str, Any], *premise: sa.ColumnElement[bool]
) -> bool:
    """Writes an attempt where the premise still holds; says whether it did."""
    statement = sa.update(job_attempts).where(job_attempts.c.id == attempt_id, *premise).values(dict(changes))
    return tx.execute(statement).rowcount == 1


class NewRun(NamedTuple):
    """A run that became known."""

    job_id: str
    number: int
    provider_job_id: str
    at: datetime


def record_runs(tx: Transaction, runs: Sequence[NewRun]) -> None:
    """Keeps the runs' ids on their attempts; an attempt that has one already keeps that."""
    seen = [{"job_id": run.job_id, "number": run.number} for run in runs]
    known = [{"provider_job_id": run.provider_job_id, "outcome": "accepted", "answered_at": run.at} for run in runs]
    update_rows(tx, job_attempts, seen, known, unset=("provider_job_id",))


class Charge(NamedTuple):
    """A cost that the provider named for an attempt."""

    job_id: str
    number: int
    cost: float


def raise_costs(tx: Transaction, charges: Sequence[Charge]) -> list[Charge]:
    """Keeps the most that was ever said an attempt costs; returns by how much each has grown.

    The caller holds the locks of the jobs.
    """
    most: dict[tuple[str, int], float] = {}
    for charge in charges:
        most[charge[:2]] = max(charge.cost, most.get(charge[:2], 0.0))
    known = _known_costs(tx, {job_id for job_id, _ in most})
    grown = [
        Charge(*owner, cost - (known[owner] or 0.0))
        for owner, cost in sorted(most.items())
        if owner in known and cost > (known[owner] or 0.0)
    ]
    seen = [{"job_id": charge.job_id, "number": charge.number} for charge in grown]
    update_rows(tx, job_attempts, seen, [{"cost": most[charge[:2]]} for charge in grown])
    return grown


def _known_costs(tx: Transaction, job_ids: Iterable[str]) -> dict[tuple[str, int], float | None]:
    columns = (job_attempts.c.job_id, job_attempts.c.number, job_attempts.c.cost)
    rows = select_rows(tx, columns, job_attempts.c.job_id, job_ids)
    return {(row["job_id"], row["number"]): row["cost"] for row in rows}


def list_run_owners(tx: Transaction, runs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], tuple[str, int]]:
    """The attempts that own some runs.

    Args:
        tx: The open transaction.
        runs: Provider entry and provider job id of each.

    Returns:
        Job id and attempt number by run; runs nobody owns are missing.
    """
    return _list_owners(tx, job_attempts.c.provider_job_id, runs)


def list_token_owners(tx: Transaction, tokens: Iterable[tuple[str, str]]) -> dict[tuple[str, str], tuple[str, int]]:
    """The attempts that some callback tokens name, as :func:`list_run_owners`."""
    return _list_owners(tx, job_attempts.c.token, tokens)


def _list_owners(
    tx: Transaction, key: sa.Column[Any], named: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], tuple[str, int]]:
    wanted: dict[str, set[str]] = {}
    for provider, name in named:
        wanted.setdefault(provider, set()).add(name)
    return {
        (provider, row[key.name]): (row["job_id"], row["number"])
        for provider, names in wanted.items()
        for row in select_rows(
            tx, (key, job_attempts.c.job_id, job_attempts.c.number), key, names, of_provider=provider
        )
    }


def _one(tx: Transaction, *conditions: sa.ColumnElement[bool]) -> Row | None:
    return tx.row(sa.select(job_attempts).where(*conditions))
