"""Many rows in one statement, by the driver: SQLAlchemy's own executemany costs several times the writes themselves.

Two functions, two dialects. SQLite runs a plain statement once for each row. PostgreSQL takes each column as one
binary array, which costs its client a fifth of one message per row, and a tenth of the same arrays as text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

import sqlalchemy as sa

from jobs.storage.database import Transaction
from jobs.storage.metadata import Instant, to_microseconds

_Row: TypeAlias = Mapping[str, Any]
_Convert: TypeAlias = Callable[[Any], Any]

# By the column's type: its name in PostgreSQL, and what the driver takes for a value that is not NULL. An array holds
# one type, hence whole numbers as floats; and psycopg would write an enumeration's name.
_TYPES: tuple[tuple[type[Any], str, _Convert | None], ...] = (
    (Instant, "bigint", to_microseconds),
    (sa.JSON, "json", json.dumps),
    (sa.Text, "text", str),
    (sa.Boolean, "boolean", None),
    (sa.BigInteger, "bigint", None),
    (sa.Integer, "int", None),
    (sa.Float, "double precision", float),
)


def insert_rows(tx: Transaction, table: sa.Table, rows: Sequence[_Row]) -> None:
    """Writes new rows; all of them name the same columns."""
    if rows:
        names = tuple(rows[0])
        _run(tx, _insert(table, names, is_sqlite=tx.is_sqlite), _columns(table, names, rows))


def update_rows(tx: Transaction, table: sa.Table, seen: Sequence[_Row], changes: Sequence[_Row]) -> int:
    """Writes changes to rows that still are as they were seen.

    Args:
        tx: The open transaction.
        table: Theirs.
        seen: For each, its key and what else must still hold; all name the same columns.
        changes: For each, in the same order, what to write; all name the same columns.

    Returns:
        How many rows were written.
    """
    if not changes:
        return 0
    wanted, written = tuple(seen[0]), tuple(changes[0])
    columns = [*_columns(table, written, changes), *_columns(table, wanted, seen)]
    return _run(tx, _update(table, wanted, written, is_sqlite=tx.is_sqlite), columns)


def _run(tx: Transaction, statement: str, columns: Sequence[Sequence[Any]]) -> int:
    parameters: Any = list(zip(*columns, strict=True)) if tx.is_sqlite else tuple(columns)
    return tx.connection.exec_driver_sql(statement, parameters).rowcount


def _columns(table: sa.Table, names: Iterable[str], rows: Sequence[_Row]) -> list[list[Any]]:
    return [_converted([row[name] for row in rows], _type_of(table, name)[1]) for name in names]


def _converted(values: list[Any], convert: _Convert | None) -> list[Any]:
    return [None if value is None else convert(value) for value in values] if convert else values


@cache
def _type_of(table: sa.Table, name: str) -> tuple[str, _Convert | None]:
    kind = table.c[name].type
    return next((words, convert) for known, words, convert in _TYPES if isinstance(kind, known))


@cache
def _insert(table: sa.Table, names: tuple[str, ...], *, is_sqlite: bool) -> str:
    into = f"INSERT INTO {table.name} ({', '.join(names)})"
    if is_sqlite:
        return f"{into} VALUES ({', '.join('?' * len(names))})"
    return f"{into} SELECT * FROM unnest({_arrays(table, names)})"  # noqa: S608


@cache
def _update(table: sa.Table, wanted: tuple[str, ...], written: tuple[str, ...], *, is_sqlite: bool) -> str:
    if is_sqlite:
        conditions = " AND ".join(f"{name} = ?" for name in wanted)
        return f"UPDATE {table.name} SET {', '.join(f'{name} = ?' for name in written)} WHERE {conditions}"  # noqa: S608
    values = ", ".join(f"{name} = v.new_{name}" for name in written)
    names = ", ".join([*(f"new_{name}" for name in written), *(f"seen_{name}" for name in wanted)])
    conditions = " AND ".join(f"t.{name} = v.seen_{name}" for name in wanted)
    arrays = _arrays(table, (*written, *wanted))
    return f"UPDATE {table.name} AS t SET {values} FROM unnest({arrays}) AS v ({names}) WHERE {conditions}"  # noqa: S608


def _arrays(table: sa.Table, names: Iterable[str]) -> str:
    return ", ".join(f"%b::{_type_of(table, name)[0]}[]" for name in names)
