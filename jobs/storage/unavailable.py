"""What a driver says of a database that cannot be reached, as :class:`Unavailable`: each says it in its own way."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from jobs.core.errors import Unavailable


@contextmanager
def as_unavailable() -> Iterator[None]:
    """Says "unavailable" for a database that cannot be reached; statement errors pass through."""
    try:
        yield
    except PoolTimeout as error:
        raise Unavailable("no database connection was free in time", retry_after=timedelta(seconds=2)) from error
    except OperationalError as error:
        if _is_fault_of_statement(error):
            raise
        raise Unavailable(f"the database is not available: {_first_line(error)}") from error
    except DBAPIError as error:
        if error.connection_invalidated:
            raise Unavailable("the database connection was lost") from error
        raise


# SQLite's driver calls everything operational, a missing table too. These, by the low byte of its codes, are of the
# moment or of the machine. Source: https://www.sqlite.org/rescode.html
_SQLITE_AWAY = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PROTOCOL,
    }
)


def _is_fault_of_statement(error: OperationalError) -> bool:
    code = getattr(error.orig, "sqlite_errorcode", None)
    return code is not None and code & 0xFF not in _SQLITE_AWAY


def _first_line(error: DBAPIError) -> str:
    return str(error.orig).splitlines()[0] if str(error.orig) else type(error.orig).__name__
