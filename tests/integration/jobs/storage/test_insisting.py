"""What has happened already is written, however busy the database is for a moment."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from jobs.core.errors import Unavailable
from jobs.storage.counters import count_up
from jobs.storage.database import Database, Transaction
from jobs.storage.schema import counters


def counted(database: Database) -> list[int]:
    with database.read() as tx:
        return [row["value"] for row in tx.rows(sa.select(counters.c.value).where(counters.c.name == "told"))]


def test_a_write_outlasts_a_writer_that_is_busy_for_longer_than_its_time_out(sqlite_url: str) -> None:
    busy, database = (Database.connect(sqlite_url, write_timeout_s=0.05) for _ in range(2))
    refused = threading.Event()

    def tell(tx: Transaction) -> int:
        return count_up(tx, "told")

    with busy.write():
        with pytest.raises(Unavailable):
            database.insist(tell, within=timedelta(milliseconds=60))
        teller = threading.Thread(target=lambda: (refused.set(), database.insist(tell)))
        teller.start()
        refused.wait()
    teller.join()

    assert counted(database) == [1]
    busy.close()
    database.close()


def test_what_is_wrong_with_a_statement_is_not_taken_for_an_outage(database: Database) -> None:
    """SQLite calls a missing table operational; trying again would not bring it."""
    calls = []

    def misspell(tx: Transaction) -> None:
        calls.append(1)
        tx.execute(sa.text("SELECT 1 FROM no_such_table"))

    with pytest.raises(DBAPIError, match="no_such_table"):
        database.insist(misspell)

    assert calls == [1]
