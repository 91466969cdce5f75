"""The database repeats the rules, and the migrations arrive where the code says they do."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy.exc import IntegrityError

import webhooks.incoming.schema
import webhooks.outgoing.schema  # noqa: F401 - both packages' tables belong to the metadata
from jobs.storage.database import Database
from jobs.storage.metadata import metadata
from jobs.storage.migrations import current_version, newest_version, upgrade
from jobs.storage.schema import dead_letters, job_attempts, job_transitions, jobs
from tests.factories import T, new_job


def test_the_migrations_end_in_the_schema_of_the_code(database: Database) -> None:
    with database.read() as tx:
        differences = compare_metadata(MigrationContext.configure(tx.connection), metadata)

    assert differences == []
    assert current_version(database) == newest_version()


def test_every_partial_index_and_check_of_the_code_is_in_the_database(database: Database) -> None:
    """Alembic compares neither CHECKs nor predicates; count them."""
    inspector = sa.inspect(database.engine)
    for table in metadata.sorted_tables:
        checks = {str(c.name) for c in table.constraints if isinstance(c, sa.CheckConstraint)}
        assert {str(c["name"]) for c in inspector.get_check_constraints(table.name)} == checks, table.name
        partial = {str(i.name) for i in table.indexes if i.dialect_options["sqlite"]["where"] is not None}
        found = {
            str(i["name"])
            for i in inspector.get_indexes(table.name)
            if any("where" in k for k in i.get("dialect_options", {}))
        }
        assert found == partial, table.name


def test_a_second_upgrade_does_nothing(database_url: str, database: Database) -> None:
    job = new_job(database)

    upgrade(database_url)

    with database.read() as tx:
        assert tx.execute(sa.select(jobs.c.id)).scalar_one() == job["id"]


def transition(job_id: str, before: str, after: str, **fields: Any) -> dict[str, Any]:
    row = {"job_id": job_id, "from_state": before, "to_state": after, "source": "poll", "at": T, "applied": True}
    return {**row, **fields}


@pytest.mark.parametrize(
    ("before", "after"),
    [("succeeded", "failed"), ("running", "running"), ("running", "pending"), ("limbo", "running")],
)
def test_an_illegal_applied_step_cannot_be_stored(database: Database, before: str, after: str) -> None:
    job = new_job(database)

    with pytest.raises(IntegrityError), database.write() as tx:
        tx.execute(sa.insert(job_transitions).values(transition(job["id"], before, after)))


def test_a_job_cannot_leave_a_state_twice(database: Database) -> None:
    job = new_job(database)

    steps = [transition(job["id"], "running", after) for after in ("succeeded", "failed")]

    with pytest.raises(IntegrityError), database.write() as tx:
        tx.execute(sa.insert(job_transitions), steps)


def test_an_ended_job_has_its_instant_and_cannot_be_due_for_a_submit(database: Database) -> None:
    job = new_job(database)
    ended = sa.update(jobs).where(jobs.c.id == job["id"])

    with pytest.raises(IntegrityError), database.write() as tx:
        tx.execute(ended.values(state="failed", next_submit_at=None))
    with pytest.raises(IntegrityError), database.write() as tx:
        tx.execute(ended.values(state="failed", finished_at=T))


def test_a_run_belongs_to_one_attempt_and_a_key_to_one(database: Database) -> None:
    first, second = new_job(database), new_job(database)
    attempts = sa.update(job_attempts)

    with pytest.raises(IntegrityError), database.write() as tx:
        tx.execute(attempts.values(provider_job_id="p-1"))
    with pytest.raises(IntegrityError), database.write() as tx:
        tx.execute(attempts.where(job_attempts.c.job_id == second["id"]).values(idempotency_key=_key(tx, first["id"])))


def _key(tx: Any, job_id: str) -> str:
    key: str = tx.execute(sa.select(job_attempts.c.idempotency_key).where(job_attempts.c.job_id == job_id)).scalar_one()
    return key


def test_one_thing_has_one_open_dead_letter(database: Database) -> None:
    letter = {"kind": "submit", "ref": "job_1", "reason": "x", "attempts": 1, "first_failed_at": T, "last_failed_at": T}

    with database.write() as tx:
        tx.execute(sa.insert(dead_letters).values(id="dl_1", **letter, discarded_at=T))
        tx.execute(sa.insert(dead_letters).values(id="dl_2", **letter))
    with pytest.raises(IntegrityError), database.write() as tx:
        tx.execute(sa.insert(dead_letters).values(id="dl_3", **letter))
