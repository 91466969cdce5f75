"""Statements that are run for each batch, compiled once: by Core, and run by the driver.

Core finds the compiled form of a statement by walking through all of it, each time anew: for the claim of a batch that
took longer than the database did.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from jobs.storage.bulk import read_rows, type_of
from jobs.storage.database import Transaction


class _Compiled(NamedTuple):
    text: str
    fixed: Mapping[str, Any]
    converts: Mapping[str, Callable[[Any], Any]]
    order: Sequence[str] | None


class Prepared:
    """A statement with named values."""

    def __init__(self, statement: sa.Executable, columns: Sequence[sa.ColumnElement[Any]] = ()) -> None:
        """Compiles nothing yet.

        Args:
            statement: Its values are :func:`sqlalchemy.bindparam`, each with a type.
            columns: What it returns.
        """
        self._statement: Any = statement
        self._columns = columns
        self._compiled: dict[bool, _Compiled] = {}

    def rows(self, tx: Transaction, **values: Any) -> list[dict[str, Any]]:
        """Runs it; all it returns, by column name."""
        return read_rows(tx, self._columns, self.run(tx, **values).all())

    def run(self, tx: Transaction, **values: Any) -> sa.CursorResult[Any]:
        """Runs it."""
        compiled = self._compiled.get(tx.is_sqlite) or self._compile(tx)
        given = {
            name: None if values[name] is None else convert(values[name]) for name, convert in compiled.converts.items()
        }
        every = {**compiled.fixed, **values, **given}
        parameters: Any = every if compiled.order is None else tuple(every[name] for name in compiled.order)
        return tx.connection.exec_driver_sql(compiled.text, parameters)

    def _compile(self, tx: Transaction) -> _Compiled:
        compiled = self._statement.compile(dialect=tx.connection.dialect)
        types = {name: type_of(bind.type)[1] for name, bind in compiled.binds.items() if bind.required}
        converts = {name: convert for name, convert in types.items() if convert is not None}
        fixed = {name: value for name, value in compiled.params.items() if name not in types}
        self._compiled[tx.is_sqlite] = _Compiled(str(compiled), fixed, converts, compiled.positiontup)
        return self._compiled[tx.is_sqlite]
