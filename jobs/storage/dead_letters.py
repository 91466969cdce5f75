"""Statements on ``dead_letters``: what exhausted its tries, with the evidence, until a person decides."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from jobs.core.events import EventType
from jobs.ids import new_id
from jobs.storage.database import Transaction
from jobs.storage.jobs import Row
from jobs.storage.outbox import append_event
from jobs.storage.schema import dead_letters


def dead_letter(  # noqa: PLR0913 - a letter is its facts, each named at the call
    tx: Transaction,
    kind: str,
    ref: str,
    *,
    reason: str,
    attempts: int,
    tenant: str | None,
    job_id: str | None = None,
    evidence: Mapping[str, Any] | None = None,
    first_failed_at: datetime | None = None,
    counts_all: bool = False,
) -> str:
    """Writes a dead letter, or adds to the open one of the same (kind, ref).

    Celery can report one failure twice, so this is an upsert: one open letter per thing, one
    ``dead_letter.created`` per letter. What was redriven and failed again keeps the count of its attempts and the
    instant of its first failure.

    Args:
        tx: The open transaction.
        kind: Of the failing thing.
        ref: Its name among those of its kind.
        reason: Why nobody will try again by himself.
        attempts: How often it was tried.
        tenant: Whose it is; None: an admin's to see.
        job_id: The job it is about.
        evidence: Further facts.
        first_failed_at: When that began; now where absent.
        counts_all: Whether ``attempts`` also counts those before a redrive.

    Returns:
        The letter's id.
    """
    known = find_open(tx, kind, ref)
    if known is not None:
        changes = {"last_failed_at": tx.now, "attempts": max(attempts, known["attempts"]), "reason": reason}
        tx.execute(sa.update(dead_letters).where(dead_letters.c.id == known["id"]).values(changes))
        return str(known["id"])
    before = _find_redriven(tx, kind, ref)
    if before is not None:
        attempts = max(attempts, before["attempts"]) if counts_all else attempts + before["attempts"]
        first_failed_at = min(first_failed_at or tx.now, before["first_failed_at"])
    row = {
        "id": new_id("dl", at=tx.now),
        "tenant": tenant,
        "kind": kind,
        "ref": ref,
        "job_id": job_id,
        "reason": reason,
        "evidence": dict(evidence or {}),
        "attempts": attempts,
        "first_failed_at": first_failed_at or tx.now,
        "last_failed_at": tx.now,
    }
    tx.execute(sa.insert(dead_letters).values(row))
    _announce(tx, row)
    return str(row["id"])


def find_open(tx: Transaction, kind: str, ref: str) -> Row | None:
    """The letter of a thing that still waits for a decision."""
    statement = sa.select(dead_letters).where(dead_letters.c.kind == kind, dead_letters.c.ref == ref, is_open())
    return tx.row(statement)


def _find_redriven(tx: Transaction, kind: str, ref: str) -> Row | None:
    """The letter of a thing that was redriven last."""
    mine = (dead_letters.c.kind == kind, dead_letters.c.ref == ref, dead_letters.c.redriven_at.is_not(None))
    return tx.row(sa.select(dead_letters).where(*mine).order_by(dead_letters.c.id.desc()).limit(1))


def add_to_reason(tx: Transaction, kind: str, ref: str, words: str) -> None:
    """Tells the person who will decide on an open letter what has happened since."""
    letter = find_open(tx, kind, ref)
    if letter is not None:
        reason = f"{letter['reason']}; {words}"
        tx.execute(sa.update(dead_letters).where(dead_letters.c.id == letter["id"]).values(reason=reason))


def is_open() -> sa.ColumnElement[bool]:
    """Neither redriven nor discarded."""
    return sa.and_(dead_letters.c.redriven_at.is_(None), dead_letters.c.discarded_at.is_(None))


def _announce(tx: Transaction, row: Row) -> None:
    letter = {name: row[name] for name in ("id", "kind", "ref", "job_id", "reason", "attempts")}
    append_event(tx, EventType.DEAD_LETTER_CREATED, tenant=row["tenant"], data={"dead_letter": letter})
