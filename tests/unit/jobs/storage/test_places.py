"""Which file a database is in."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.storage.places import file_of


@pytest.mark.parametrize(
    ("url", "file"),
    [
        ("sqlite:////data/homing.db", Path("/data/homing.db")),
        ("sqlite:///homing.db", Path("homing.db")),
        ("postgresql+psycopg://u:p@h:5432/homing", None),
    ],
)
def test_a_sqlite_database_is_a_file_and_a_servers_is_none(url: str, file: Path | None) -> None:
    assert file_of(url) == file
