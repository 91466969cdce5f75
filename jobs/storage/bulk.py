"""Many rows in one statement, by the driver: in a batch SQLAlchemy and the psycopg of a placeholder for each value
cost several times the statements themselves.

Three functions, two dialects. SQLite runs a plain statement once for each row, and is asked for many keys by one JSON
array. PostgreSQL takes each column, or all keys, as one binary array: as text it costs its client ten times as much.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

import sqlalchemy as sa

from jobs.storage.database import Transaction
from jobs.storage.metadata import Instant, from_microseconds, to_microseconds

_Row: TypeAlias = Mapping[str, Any]
_Dict: TypeAlias = dict[str, Any]
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


def _document(stored: str | bytes | float) -> Any:
    """SQLite makes a number of a JSON text that is nothing but one, for it takes the column's type for numeric."""
    return json.loads(stored) if isinstance(stored, str | bytes) else stored


# What the drivers return otherwise than we want it; psycopg reads JSON by itself.
_FROM_SQLITE: tuple[tuple[type[Any], _Convert], ...] = (
    (Instant, from_microseconds),
    (sa.JSON, _document),
    (sa.Boolean, bool),
)
_FROM_POSTGRESQL: tuple[tuple[type[Any], _Convert], ...] = ((Instant, from_microseconds),)


def select_rows(
    tx: Transaction,
    columns: Sequence[sa.Column[Any]],
    key: sa.Column[Any],
    values: Iterable[str],
    *,
    of_provider: str | None = None,
    lock: bool = False,
) -> list[dict[str, Any]]:
    """Reads the rows whose key is among some values, in the order of the key.

    Args:
        tx: The open transaction.
        columns: What to read, all of one table.
        key: Which column is compared.
        values: Texts; repeated ones are read once.
        of_provider: Only rows of this provider entry: ids of a provider's making are unique among its own.
        lock: Whether the rows are locked as well (PostgreSQL; SQLite's writer has its lock).
    """
    wanted = sorted(set(values))
    if not wanted:
        return []
    names = tuple(column.name for column in columns)
    statement = _select(key, names, by_provider=of_provider is not None, lock=lock, is_sqlite=tx.is_sqlite)
    keys = json.dumps(wanted) if tx.is_sqlite else wanted
    parameters = (keys,) if of_provider is None else (keys, of_provider)
    return read_rows(tx, columns, tx.connection.exec_driver_sql(statement, parameters).all())


def read_rows(tx: Transaction, columns: Sequence[sa.ColumnElement[Any]], found: Sequence[Sequence[Any]]) -> list[_Dict]:
    """What the driver returned for some columns, as what it stands for, by column name."""
    known = _FROM_SQLITE if tx.is_sqlite else _FROM_POSTGRESQL
    names = tuple(str(column.key) for column in columns)
    by_column = zip(*found, strict=True)  # nothing at all where nothing was found
    read = [_converted(list(values), _how(known, column)) for column, values in zip(columns, by_column)]  # noqa: B905
    return [dict(zip(names, row, strict=True)) for row in zip(*read, strict=True)]


def insert_rows(tx: Transaction, table: sa.Table, rows: Sequence[_Row]) -> None:
    """Writes new rows; all of them name the same columns."""
    if rows:
        names = tuple(rows[0])
        _run(tx, _insert(table, names, is_sqlite=tx.is_sqlite), _columns(table, names, rows))


def update_rows(
    tx: Transaction, table: sa.Table, seen: Sequence[_Row], changes: Sequence[_Row], *, unset: tuple[str, ...] = ()
) -> int:
    """Writes changes to rows that still are as they were seen.

    Args:
        tx: The open transaction.
        table: Theirs.
        seen: For each, its key and what else must still hold; all name the same columns.
        changes: For each, in the same order, what to write; all name the same columns.
        unset: Columns that must still be NULL.

    Returns:
        How many rows were written.
    """
    if not changes:
        return 0
    wanted, cleared = tuple(seen[0]), _cleared(changes)
    written = tuple(name for name in changes[0] if name not in cleared)
    columns = [*_columns(table, written, changes), *_columns(table, wanted, seen)]
    return _run(tx, _update(table, wanted, written, cleared, unset, is_sqlite=tx.is_sqlite), columns)


def _run(tx: Transaction, statement: str, columns: Sequence[Sequence[Any]]) -> int:
    parameters: Any = list(zip(*columns, strict=True)) if tx.is_sqlite else tuple(columns)
    return tx.connection.exec_driver_sql(statement, parameters).rowcount


def _cleared(changes: Sequence[_Row]) -> tuple[str, ...]:
    """Columns that become NULL in every row: the statement says so, for a driver takes long to hand one over."""
    return tuple(name for name in changes[0] if all(row[name] is None for row in changes))


def _columns(table: sa.Table, names: Iterable[str], rows: Sequence[_Row]) -> list[list[Any]]:
    return [_converted([row[name] for row in rows], _type_of(table, name)[1]) for name in names]


def _converted(values: list[Any], convert: _Convert | None) -> list[Any]:
    return [None if value is None else convert(value) for value in values] if convert else values


@cache
def _type_of(table: sa.Table, name: str) -> tuple[str, _Convert | None]:
    return type_of(table.c[name].type)


def type_of(kind: sa.types.TypeEngine[Any]) -> tuple[str, _Convert | None]:
    """A type's name in PostgreSQL, and what makes of a value what the drivers take."""
    return next((words, convert) for known, words, convert in _TYPES if isinstance(kind, known))


@cache
def _how(known: tuple[tuple[type[Any], _Convert], ...], column: sa.ColumnElement[Any]) -> _Convert | None:
    return next((convert for kind, convert in known if isinstance(column.type, kind)), None)


@cache
def _select(key: sa.Column[Any], names: tuple[str, ...], *, by_provider: bool, lock: bool, is_sqlite: bool) -> str:
    among = "IN (SELECT value FROM json_each(?))" if is_sqlite else "= ANY(%b::text[])"
    provider = f" AND provider = {'?' if is_sqlite else '%s'}" if by_provider else ""
    locked = " FOR UPDATE" if lock and not is_sqlite else ""
    conditions = f"{key.name} {among}{provider}"
    return f"SELECT {', '.join(names)} FROM {key.table.name} WHERE {conditions} ORDER BY {key.name}{locked}"  # noqa: S608


@cache
def _insert(table: sa.Table, names: tuple[str, ...], *, is_sqlite: bool) -> str:
    into = f"INSERT INTO {table.name} ({', '.join(names)})"
    if is_sqlite:
        return f"{into} VALUES ({', '.join('?' * len(names))})"
    return f"{into} SELECT * FROM unnest({_arrays(table, names)})"  # noqa: S608


@cache
def _update(
    table: sa.Table,
    wanted: tuple[str, ...],
    written: tuple[str, ...],
    cleared: tuple[str, ...],
    unset: tuple[str, ...],
    *,
    is_sqlite: bool,
) -> str:
    emptied = [f"{name} = NULL" for name in cleared]
    nulls = [f"{name} IS NULL" for name in unset]
    if is_sqlite:
        conditions = " AND ".join([*(f"{name} = ?" for name in wanted), *nulls])
        values = ", ".join([*(f"{name} = ?" for name in written), *emptied])
        return f"UPDATE {table.name} SET {values} WHERE {conditions}"  # noqa: S608
    values = ", ".join([*(f"{name} = v.new_{name}" for name in written), *emptied])
    names = ", ".join([*(f"new_{name}" for name in written), *(f"seen_{name}" for name in wanted)])
    conditions = " AND ".join([*(f"t.{name} = v.seen_{name}" for name in wanted), *nulls])
    arrays = _arrays(table, (*written, *wanted))
    return f"UPDATE {table.name} AS t SET {values} FROM unnest({arrays}) AS v ({names}) WHERE {conditions}"  # noqa: S608


def _arrays(table: sa.Table, names: Iterable[str]) -> str:
    return ", ".join(f"%b::{_type_of(table, name)[0]}[]" for name in names)
