"""Statements on ``redrives``: a redrive of many letters, moved on one letter at a time under a lease.

The letters it may touch are those that were open when it was asked for: it names the newest of them, and knows its
place among them. What somebody else decides about one of them meanwhile is seen when its turn comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from jobs.core.errors import NotFound, Stale
from jobs.ids import new_token
from jobs.storage.database import Transaction
from jobs.storage.dead_letters import is_open
from jobs.storage.jobs import Row
from jobs.storage.letter_filter import LetterFilter, conditions_of
from jobs.storage.letter_schema import redrives
from jobs.storage.listing import owned_by
from jobs.storage.schema import dead_letters

_r, _l = redrives.c, dead_letters.c


def insert_redrive(tx: Transaction, row: Row) -> bool:
    """Writes a new redrive; False where another one has its idempotency key."""
    statement = tx.insert(redrives).values(dict(row)).on_conflict_do_nothing().returning(_r.id)
    return tx.execute(statement).first() is not None


def find_by_key(tx: Transaction, tenant: str, key: str, *, with_fleet: bool) -> Row | None:
    """The redrive a key has made, of those that reach as far."""
    made = (_r.tenant == tenant, _r.with_fleet.is_(with_fleet), _r.idempotency_key == key)
    return tx.row(sa.select(redrives).where(*made))


def get_redrive(tx: Transaction, redrive_id: str, *, tenant: str, with_fleet: bool, locked: bool = False) -> Row:
    """One redrive. One that also touches letters of no tenant is an admin's to see.

    Raises:
        NotFound: There is none, or it is not this reader's.
    """
    statement = sa.select(redrives).where(_r.id == redrive_id, *_visible(tenant, with_fleet))
    row = tx.row(statement.with_for_update() if locked else statement)
    if row is None:
        raise NotFound(f"there is no redrive {redrive_id!r}")
    return row


def list_redrives(
    tx: Transaction, *, tenant: str, with_fleet: bool, before: str | None, limit: int
) -> list[dict[str, Any]]:
    """Redrives, newest first."""
    conditions = _visible(tenant, with_fleet)
    if before is not None:
        conditions.append(_r.id < before)
    return tx.rows(sa.select(redrives).where(*conditions).order_by(_r.id.desc()).limit(limit))


def count_letters(tx: Transaction, wanted: LetterFilter, *, tenant: str, with_fleet: bool) -> tuple[int, str | None]:
    """How many open letters fit, and the newest of them."""
    statement = sa.select(sa.func.count().label("total"), sa.func.max(_l.id).label("last")).where(
        owned_by(_l.tenant, tenant, with_fleet), is_open(), *conditions_of(wanted)
    )
    row = tx.execute(statement).one()
    return int(row.total), row.last


def has_due(tx: Transaction) -> bool:
    """Whether any redrive may go on now; costs one look at the partial index."""
    return tx.row(sa.select(_r.id).where(*_is_due(tx.now)).limit(1)) is not None


def claim(tx: Transaction, *, until: datetime) -> Row | None:
    """Takes on the redrive that has waited longest, and counts the start."""
    due = sa.select(redrives).where(*_is_due(tx.now)).order_by(_r.next_at).limit(1).with_for_update(skip_locked=True)
    row = tx.row(due)
    if row is None:
        return None
    taken = {"lease_token": new_token(), "lease_until": until, "starts": row["starts"] + 1}
    tx.execute(sa.update(redrives).where(_r.id == row["id"]).values(taken))
    return {**row, **taken}


def find_next_letter(tx: Transaction, row: Row, wanted: LetterFilter) -> str | None:
    """The next letter of a redrive; one that somebody has decided about since it was asked for is one of them."""
    decided = sa.or_(_l.redriven_at >= row["created_at"], _l.discarded_at >= row["created_at"])
    conditions = [
        owned_by(_l.tenant, row["tenant"], row["with_fleet"]),
        _l.id <= row["last_letter"],
        sa.or_(is_open(), decided),
        *conditions_of(wanted),
    ]
    if row["after_letter"] is not None:
        conditions.append(_l.id > row["after_letter"])
    found = tx.row(sa.select(_l.id).where(*conditions).order_by(_l.id).limit(1))
    return found["id"] if found else None


def update_held(tx: Transaction, row: Row, changes: Row) -> None:
    """Writes under the lease a redrive was claimed with.

    Raises:
        Stale: It has passed on, or the redrive was ended meanwhile; nothing of this transaction may be kept.
    """
    mine = sa.and_(_r.id == row["id"], _r.lease_token == row["lease_token"])
    if tx.execute(sa.update(redrives).where(mine).values(dict(changes))).rowcount != 1:
        raise Stale(f"redrive {row['id']} is somebody else's by now")


def end(tx: Transaction, redrive_id: str, state: str, *, error: str | None = None) -> bool:
    """Ends a redrive that runs; whoever works on it finds its lease gone. False where it had ended."""
    ended = {"state": state, "error": error, "next_at": None, "finished_at": tx.now, "lease_token": None}
    running = sa.and_(_r.id == redrive_id, _r.state == "running")
    return tx.execute(sa.update(redrives).where(running).values(ended)).rowcount == 1


def _visible(tenant: str, with_fleet: bool) -> list[sa.ColumnElement[bool]]:
    return [_r.tenant == tenant, *([] if with_fleet else [~_r.with_fleet])]


def _is_due(now: datetime) -> Sequence[sa.ColumnElement[bool]]:
    is_free = sa.or_(_r.lease_token.is_(None), _r.lease_until <= now)
    return (_r.next_at.is_not(None), _r.next_at <= now, is_free)
