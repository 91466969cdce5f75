"""Whose work is due: statements that look at a few entries of an index, however much is due.

The indexes hold provider, tenant and due time of open work. From one tenant the next is found by one look, so the cost
is in tenants with open work and not in jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from jobs.storage.database import Transaction
from jobs.storage.jobs import DUE_COLUMNS, is_free
from jobs.storage.schema import jobs

#: Tenants, or provider entries, looked at in one statement: SQLite takes 500 parts at most.
MOST_TENANTS = 200


def due_tenants(tx: Transaction, kind: str, providers: Sequence[str]) -> dict[str, list[str]]:
    """The tenants with due work of a kind, by provider, in the order of their names. Held leases are not looked at."""
    parts = (providers[start : start + MOST_TENANTS] for start in range(0, len(providers), MOST_TENANTS))
    rows = [row for part in parts for row in tx.rows(_turns(kind, part, now=tx.now))]
    found: dict[str, list[str]] = {}
    for row in sorted(rows, key=lambda row: (row["provider"], row["tenant"])):
        found.setdefault(row["provider"], []).append(row["tenant"])
    return found


def _turns(kind: str, providers: Sequence[str], *, now: datetime) -> sa.Select[Any]:
    """Goes from tenant to tenant by the index, and looks at the oldest due time of each."""
    due_at = jobs.c[DUE_COLUMNS[kind]]
    names = sa.union_all(*(sa.select(sa.literal(name).label("provider")) for name in providers)).subquery()
    first = sa.select(names.c.provider, _first_tenant(due_at, names.c.provider).label("tenant"))
    turns = first.cte("turns", recursive=True)
    following = _first_tenant(due_at, turns.c.provider, after=turns.c.tenant)
    turns = turns.union_all(sa.select(turns.c.provider, following).where(turns.c.tenant.is_not(None)))
    mine = (jobs.c.provider == turns.c.provider, jobs.c.tenant == turns.c.tenant, due_at.is_not(None))
    oldest = sa.select(sa.func.min(due_at)).where(*mine).correlate(turns).scalar_subquery()
    return sa.select(turns.c.provider, turns.c.tenant).where(turns.c.tenant.is_not(None), oldest <= now)


def _first_tenant(due_at: Any, provider: Any, *, after: Any = None) -> sa.ScalarSelect[Any]:
    open_work = [jobs.c.provider == provider, due_at.is_not(None)]
    if after is not None:
        open_work.append(jobs.c.tenant > after)
    return sa.select(sa.func.min(jobs.c.tenant)).where(*open_work).correlate_except(jobs).scalar_subquery()


def due_in_turn(
    tx: Transaction, kind: str, provider: str, *, tenants: Sequence[str], limit: int
) -> list[dict[str, Any]]:
    """Due jobs of a provider with a free lease: the tenants take turns, the longest due of each first.

    Args:
        tx: The open transaction.
        kind: ``submit``, ``poll`` or ``cancel``.
        provider: Whose.
        tenants: Who have due work, in the order of their turns.
        limit: Jobs at most.

    Returns:
        ``id``, ``tenant`` and ``due_at`` of each; rows that another claim has locked are skipped.
    """
    chosen = tenants[: min(limit, MOST_TENANTS)]
    if limit < 1 or not chosen:
        return []
    if len(chosen) == 1:
        return tx.rows(_due_of(kind, provider, chosen[0], tx.now).limit(limit).with_for_update(skip_locked=True))
    most = min(limit, max(-(-limit // len(chosen)), 1000 // len(chosen)))
    parts = [sa.select(_due_of(kind, provider, tenant, tx.now).limit(most).subquery()) for tenant in chosen]
    rows = _interleaved(tx.rows(sa.union_all(*parts)), chosen)[:limit]
    free = _lock_free(tx, [row["id"] for row in rows])
    return [row for row in rows if row["id"] in free]


def _due_of(kind: str, provider: str, tenant: str, now: datetime) -> sa.Select[Any]:
    due_at = jobs.c[DUE_COLUMNS[kind]]
    mine = (jobs.c.provider == provider, jobs.c.tenant == tenant)
    columns = (jobs.c.id, jobs.c.tenant, due_at.label("due_at"))
    return sa.select(*columns).where(*mine, due_at.is_not(None), due_at <= now, is_free(now)).order_by(due_at)


def _interleaved(rows: Sequence[dict[str, Any]], tenants: Sequence[str]) -> list[dict[str, Any]]:
    turn = {tenant: place for place, tenant in enumerate(tenants)}
    rounds = dict.fromkeys(tenants, 0)
    placed = []
    for row in sorted(rows, key=lambda row: row["due_at"]):
        rounds[row["tenant"]] += 1
        placed.append((rounds[row["tenant"]], turn[row["tenant"]], row))
    return [row for _round, _turn, row in sorted(placed, key=lambda place: place[:2])]


def _lock_free(tx: Transaction, job_ids: Sequence[str]) -> set[str]:
    """Those that are free still, locked; the order of ids is the order of locks."""
    statement = sa.select(jobs.c.id).where(jobs.c.id.in_(job_ids), is_free(tx.now)).order_by(jobs.c.id)
    return {row["id"] for row in tx.rows(statement.with_for_update(skip_locked=True))}
