"""A statement of Core that is compiled once takes and returns what it would through Core, however often it is run."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa

from jobs.storage.database import Database
from jobs.storage.metadata import Document, Instant
from jobs.storage.prepared import Prepared
from jobs.storage.schema import jobs
from tests.factories import new_job

_DOCUMENT = {"text": "naïve \N{SNOWMAN} 100% %s ? :name", "list": [1, 2.5, None, True]}
_COLUMNS = (jobs.c.id, jobs.c.output, jobs.c.deadline_at, jobs.c.failing, sa.func.length(jobs.c.id).label("length"))


def a_statement() -> Prepared:
    change = (
        sa.update(jobs)
        .where(jobs.c.id == sa.bindparam("wanted", type_=sa.Text()), jobs.c.version > 0)
        .values(
            deadline_at=sa.bindparam("at", type_=Instant()),
            output=sa.bindparam("said", type_=Document),
            version=jobs.c.version + 1,
        )
    )
    return Prepared(change.returning(*_COLUMNS), _COLUMNS)


def test_values_and_rows_are_those_of_core_at_every_run(database: Database) -> None:
    job = new_job(database)
    statement = a_statement()

    for hours in (1, 2):
        with database.write() as tx:
            at = tx.now + timedelta(hours=hours, microseconds=1)
            returned = statement.rows(tx, wanted=job["id"], at=at, said=_DOCUMENT)
            (read,) = tx.rows(sa.select(*_COLUMNS).where(jobs.c.id == job["id"]))

        assert returned == [read]
        assert (read["deadline_at"], read["output"]) == (at, _DOCUMENT)


def test_a_statement_that_finds_nothing_returns_nothing(database: Database) -> None:
    with database.write() as tx:
        assert a_statement().rows(tx, wanted="job_unknown", at=tx.now, said=None) == []


def test_a_value_that_is_missing_is_an_error(database: Database) -> None:
    with database.write() as tx, pytest.raises(KeyError, match="at"):
        a_statement().rows(tx, wanted="job_1", said=None)
