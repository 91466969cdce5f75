"""Where a database is kept."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy.engine import make_url


def file_of(database_url: str) -> Path | None:
    """The file of a SQLite database, whether it is there or not; None for a server's."""
    url = make_url(database_url)
    return Path(url.database or "") if url.get_backend_name() == "sqlite" else None
