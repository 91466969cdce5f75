"""Statements on ``spend``: what was spent at each provider, by tenant and UTC day.

Lock order: jobs and attempts before spend, and spend in the order of its keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from jobs.core.spending import day_of
from jobs.storage import account_schema
from jobs.storage.database import Transaction
from jobs.storage.prepared import Prepared

_spend = account_schema.spend


class Spent(NamedTuple):
    """An amount that was not booked yet."""

    provider: str
    tenant: str
    currency: str
    amount: float


def book(tx: Transaction, amounts: Iterable[Spent]) -> None:
    """Adds amounts to today's."""
    totals: dict[tuple[str, str, str], float] = {}
    for spent in amounts:
        totals[spent[:3]] = totals.get(spent[:3], 0.0) + spent.amount
    booked = _booked(is_sqlite=tx.is_sqlite)
    for (provider, tenant, currency), amount in sorted(totals.items()):
        booked.run(tx, provider=provider, tenant=tenant, currency=currency, day=day_of(tx.now), amount=amount)


@cache
def _booked(*, is_sqlite: bool) -> Prepared:
    insert = sqlite.insert if is_sqlite else postgresql.insert
    statement = insert(_spend).values(
        {column.name: sa.bindparam(column.name, type_=column.type) for column in _spend.c}
    )
    added = {"amount": _spend.c.amount + statement.excluded.amount}
    return Prepared(statement.on_conflict_do_update(index_elements=list(_spend.primary_key.columns), set_=added))


def sum_spent(tx: Transaction, provider: str, *, currency: str, since: str, tenant: str | None = None) -> float:
    """What was spent from a day on, by one tenant or by all."""
    mine = [_spend.c.provider == provider, _spend.c.currency == currency, _spend.c.day >= since]
    if tenant is not None:
        mine.append(_spend.c.tenant == tenant)
    return float(tx.execute(sa.select(sa.func.coalesce(sa.func.sum(_spend.c.amount), 0.0)).where(*mine)).scalar_one())


def list_spend(tx: Transaction) -> list[dict[str, Any]]:
    """All that was ever spent, by provider and currency."""
    columns = (_spend.c.provider, _spend.c.currency)
    amount = sa.func.sum(_spend.c.amount).label("amount")
    return tx.rows(sa.select(*columns, amount).group_by(*columns).order_by(*columns))
