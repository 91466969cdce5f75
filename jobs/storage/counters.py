"""Statements on ``counters``: numbers that only grow, each under its name.

Whoever locks a counter holds it until the transaction ends, so numbers given under the lock have no gaps and commit
in their own order.
"""

from __future__ import annotations

import sqlalchemy as sa

from jobs.storage.database import Transaction
from jobs.storage.schema import counters


def lock_counter(tx: Transaction, name: str) -> int:
    """The counter's value, locked until the transaction ends; 0 where it has never counted."""
    value = _locked(tx, name)
    if value is None:
        _create(tx, name)
        value = _locked(tx, name)
    return value or 0


def read_counter(tx: Transaction, name: str) -> int:
    """The counter's value, not locked; 0 where it has never counted."""
    found = tx.row(sa.select(counters.c.value).where(counters.c.name == name))
    return 0 if found is None else int(found["value"])


def set_counter(tx: Transaction, name: str, value: int) -> None:
    """Writes the value of a counter that this transaction has locked."""
    tx.execute(sa.update(counters).where(counters.c.name == name).values(value=value))


def count_up(tx: Transaction, name: str) -> int:
    """The next number of a counter, from 1."""
    number = lock_counter(tx, name) + 1
    set_counter(tx, name, number)
    return number


def is_counter_at(tx: Transaction, name: str, value: int) -> bool:
    """Whether the counter stands at a value; if so it stays there until the transaction ends."""
    return _locked(tx, name) == value


def raise_counter(tx: Transaction, name: str, value: int) -> bool:
    """Moves a counter forward to a value; False where somebody has got it there already."""
    if lock_counter(tx, name) >= value:
        return False
    set_counter(tx, name, value)
    return True


def _locked(tx: Transaction, name: str) -> int | None:
    # On SQLite the writer lock is held already, and FOR UPDATE is left out.
    found = tx.row(sa.select(counters.c.value).where(counters.c.name == name).with_for_update())
    return None if found is None else int(found["value"])


def _create(tx: Transaction, name: str) -> None:
    tx.execute(tx.insert(counters).values(name=name, value=0).on_conflict_do_nothing())
