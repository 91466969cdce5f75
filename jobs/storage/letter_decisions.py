"""Statements for what a person decides about a dead letter; each is taken once."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from jobs.core.errors import NotFound
from jobs.storage.database import Transaction
from jobs.storage.dead_letters import is_open
from jobs.storage.jobs import lock_jobs
from jobs.storage.listing import owned_by
from jobs.storage.schema import dead_letters


def get_letter(
    tx: Transaction, letter_id: str, *, tenant: str, with_fleet: bool, locked: bool = False
) -> dict[str, Any]:
    """One letter.

    Args:
        tx: The open transaction.
        letter_id: ``dl_…``.
        tenant: Whose letters.
        with_fleet: Also letters that belong to no tenant.
        locked: Hold the row, and its job's, until the transaction ends: rivals wait, and then see what was decided.

    Raises:
        NotFound: There is none, or it is not this tenant's.
    """
    columns = dead_letters.c
    ours = owned_by(columns.tenant, tenant, with_fleet)
    statement = sa.select(dead_letters).where(columns.id == letter_id, ours)
    row = _only(tx, statement, letter_id)
    if not locked:
        return row
    if row["job_id"] is not None:
        lock_jobs(tx, [row["job_id"]])  # before its letters: whoever writes one of them holds the job
    return _only(tx, statement.with_for_update(), letter_id)


def _only(tx: Transaction, statement: sa.Select[Any], letter_id: str) -> dict[str, Any]:
    row = tx.row(statement)
    if row is None:
        raise NotFound(f"there is no dead letter {letter_id!r}")
    return row


def mark_redriven(tx: Transaction, letter_id: str, *, by: str) -> bool:
    """Records a redrive; False where the letter is no longer open."""
    return _mark(tx, letter_id, {"redriven_at": tx.now, "redriven_by": by})


def mark_discarded(tx: Transaction, letter_id: str, *, by: str) -> bool:
    """Records that nothing will be done; False where the letter is no longer open."""
    return _mark(tx, letter_id, {"discarded_at": tx.now, "discarded_by": by})


def _mark(tx: Transaction, letter_id: str, changes: dict[str, Any]) -> bool:
    statement = sa.update(dead_letters).where(dead_letters.c.id == letter_id, is_open()).values(changes)
    return tx.execute(statement).rowcount == 1
