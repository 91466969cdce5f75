"""Errors in words that a row and a log may hold."""

from __future__ import annotations

from typing import Any

from sqlalchemy.exc import DBAPIError

from jobs.core.errors import JobsError


def describe(error: Exception) -> str:
    """What went wrong. A database's own text may quote the values, which are the provider's data."""
    if isinstance(error, JobsError):
        return f"{type(error).__name__}: {error.detail}"
    return type(error.orig).__name__ if isinstance(error, DBAPIError) else type(error).__name__


def traceback_of(error: Exception) -> dict[str, Any]:
    """The argument that adds a traceback to a log line, where the error is a defect and quotes no values."""
    return {} if isinstance(error, JobsError | DBAPIError) else {"exc_info": error}
