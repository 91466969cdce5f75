"""What the doctor reads of a real database."""

from __future__ import annotations

import sqlalchemy as sa

from homing.doctor.database_facts import read_database
from jobs.storage.database import Database
from jobs.storage.schema import handler_runs
from tests.factories import T


def test_handlers_that_fail_are_counted_and_those_that_are_done_or_new_are_not(database: Database) -> None:
    run = {"handler": "films.deliver", "tries": 1, "next_try_at": T, "error": "no such table"}
    runs = [
        {**run, "event_id": "evt_1"},
        {**run, "event_id": "evt_2"},
        {**run, "event_id": "evt_3", "error": None},
        {**run, "event_id": "evt_4", "next_try_at": None},
    ]
    with database.write() as tx:
        tx.execute(sa.insert(handler_runs), runs)

    assert read_database(database).failing_handlers == {"films.deliver": 2}
