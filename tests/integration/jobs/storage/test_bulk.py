"""What goes to the database and back by the driver alone keeps SQLAlchemy's types, and repeats its premise."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from jobs.core.states import JobState
from jobs.storage.bulk import insert_rows, select_rows, update_rows
from jobs.storage.database import Database, Transaction
from jobs.storage.jobs import NEW_JOB
from jobs.storage.schema import jobs

_DOCUMENT = {"text": "naïve \N{SNOWMAN} 100% %s ? :name", "list": [1, 2.5, None, True], "big": 2**70, "empty": {}}


def job_row(tx: Transaction, job_id: str, **given: Any) -> Mapping[str, Any]:
    first = {
        "id": job_id,
        "tenant": "acme",
        "provider": "renders",
        "input": {},
        "metadata": {},
        "deadline_s": 60,
        "deadline_at": tx.now + timedelta(minutes=1),
        "created_at": tx.now,
    }
    return {**NEW_JOB, **first, **given}


def as_core_reads(tx: Transaction) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in tx.rows(sa.select(jobs))}


def test_what_is_inserted_is_what_sqlalchemy_reads(database: Database) -> None:
    with database.write() as tx:
        plain = job_row(tx, "job_1", output=None, cost=None, state=JobState.PENDING)
        whole = job_row(tx, "job_2", output=_DOCUMENT, cost=3, state=JobState.RUNNING)

        insert_rows(tx, jobs, [plain, whole])

        read = as_core_reads(tx)
    assert read["job_1"]["output"] is None
    assert read["job_2"]["output"] == _DOCUMENT
    assert (read["job_2"]["cost"], read["job_1"]["cost"]) == (3.0, None)
    assert [read[name]["state"] for name in ("job_1", "job_2")] == ["pending", "running"]
    assert read["job_2"]["deadline_at"] == whole["deadline_at"]
    assert read["job_2"]["failing"] is False


def test_what_is_selected_is_what_sqlalchemy_reads(database: Database) -> None:
    with database.write() as tx:
        insert_rows(tx, jobs, [job_row(tx, f"job_{number}", output=_DOCUMENT) for number in (3, 1, 2)])

        found = select_rows(tx, tuple(jobs.c), jobs.c.id, ["job_3", "job_1", "job_3", "job_9"], lock=True)

        read = as_core_reads(tx)
    assert found == [read["job_1"], read["job_3"]]


@pytest.mark.parametrize("output", [0, -3, 0.93, 1e300, True, "7", "", [], "null", 2**53])
def test_a_document_may_be_a_bare_value(database: Database, output: Any) -> None:
    """A prediction's whole output may be a number, which SQLite stores as one and not as text."""
    with database.write() as tx:
        insert_rows(tx, jobs, [job_row(tx, "job_1", output=output)])

        (found,) = select_rows(tx, tuple(jobs.c), jobs.c.id, ["job_1"])

        assert found == as_core_reads(tx)["job_1"]
    assert found["output"] == output
    assert type(found["output"]) is type(output)


def test_nothing_asked_for_is_nothing_found(database: Database) -> None:
    with database.read() as tx:
        assert select_rows(tx, tuple(jobs.c), jobs.c.id, []) == []
        assert select_rows(tx, tuple(jobs.c), jobs.c.id, ["job_1"]) == []


def test_rows_of_another_provider_are_not_found(database: Database) -> None:
    with database.write() as tx:
        insert_rows(tx, jobs, [job_row(tx, f"job_{name}", provider=name) for name in ("a", "b")])

        found = select_rows(tx, (jobs.c.id,), jobs.c.id, ["job_a", "job_b"], of_provider="b")

    assert found == [{"id": "job_b"}]


def test_only_rows_that_are_as_they_were_seen_are_written(database: Database) -> None:
    with database.write() as tx:
        insert_rows(tx, jobs, [job_row(tx, f"job_{number}") for number in (1, 2)])
        seen = [{"id": "job_1", "version": 1}, {"id": "job_2", "version": 7}]

        written = update_rows(tx, jobs, seen, [{"version": 2, "output": _DOCUMENT}, {"version": 8, "output": None}])

        read = as_core_reads(tx)
    assert written == 1
    assert (read["job_1"]["version"], read["job_1"]["output"]) == (2, _DOCUMENT)
    assert read["job_2"]["version"] == 1


def test_a_column_that_must_be_null_is_a_premise_too(database: Database) -> None:
    with database.write() as tx:
        insert_rows(tx, jobs, [job_row(tx, "job_1", lease_token=None), job_row(tx, "job_2", lease_token="held")])
        seen = [{"id": "job_1"}, {"id": "job_2"}]

        written = update_rows(tx, jobs, seen, [{"lease_token": "ours"}] * 2, unset=("lease_token",))

        read = as_core_reads(tx)
    assert written == 1
    assert [read[name]["lease_token"] for name in ("job_1", "job_2")] == ["ours", "held"]


@pytest.mark.parametrize("size", [0, 1, 700])
def test_any_number_of_rows_is_written_and_read(database: Database, size: int) -> None:
    with database.write() as tx:
        names = [f"job_{number:04}" for number in range(size)]
        insert_rows(tx, jobs, [job_row(tx, name) for name in names])
        written = update_rows(tx, jobs, [{"id": name} for name in names], [{"cost": 0.5}] * size)

        assert written == size
        assert [row["id"] for row in select_rows(tx, (jobs.c.id,), jobs.c.id, names)] == names


def test_a_column_that_is_cleared_in_every_row_is_cleared_and_one_cleared_in_some_too(database: Database) -> None:
    with database.write() as tx:
        insert_rows(tx, jobs, [job_row(tx, f"job_{number}", cost=1.0, model="one") for number in (1, 2)])
        seen = [{"id": f"job_{number}", "version": 1} for number in (1, 2)]

        written = update_rows(tx, jobs, seen, [{"cost": None, "model": None}, {"cost": None, "model": "two"}])

        read = as_core_reads(tx)
    assert written == 2
    assert [(read[name]["cost"], read[name]["model"]) for name in ("job_1", "job_2")] == [(None, None), (None, "two")]


def test_nothing_but_cleared_columns_can_be_written(database: Database) -> None:
    with database.write() as tx:
        insert_rows(tx, jobs, [job_row(tx, f"job_{number}", cost=1.0) for number in (1, 2)])

        written = update_rows(tx, jobs, [{"id": "job_1", "version": 1}], [{"cost": None}])

        read = as_core_reads(tx)
    assert (written, read["job_1"]["cost"], read["job_2"]["cost"]) == (1, None, 1.0)
