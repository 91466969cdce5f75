"""At every moment the work nobody does is the work with an open letter; what is otherwise is seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from jobs.core.events import EventType
from jobs.storage.database import Database
from jobs.storage.dead_letters import dead_letter
from jobs.storage.handler_runs import insert_runs
from jobs.storage.letter_decisions import mark_redriven
from jobs.storage.outbox import append_event
from jobs.storage.schema import handler_runs, outbox
from tests.crashing.letters import count_announced, find_faults, is_waiting, list_done, list_letters


@pytest.fixture
def database(sqlite_url: str) -> Iterator[Database]:
    made = Database.connect(sqlite_url)
    yield made
    made.close()


@pytest.fixture
def run_id(database: Database) -> int:
    """A handler's run that was given up."""
    with database.write() as tx:
        event = append_event(tx, EventType.JOB_SUCCEEDED, tenant="acme", data={})
        (claimed,) = insert_runs(tx, [(event, "some")], until=tx.now)
    _change(database, next_try_at=None)
    return claimed.run_id


def _change(database: Database, **changes: Any) -> None:
    with database.write() as tx:
        tx.execute(sa.update(handler_runs).values(changes))


def _bury(database: Database, run_id: int) -> str:
    with database.write() as tx:
        return dead_letter(tx, "handler", str(run_id), reason="it failed", attempts=8, tenant="acme")


def _faults(database: Database) -> list[str]:
    with database.read() as tx:
        return list(find_faults(tx))


def test_work_that_was_given_up_without_a_letter_is_seen(database: Database, run_id: int) -> None:
    assert _faults(database) == [f"handler {run_id} was given up, and has no open letter"]


def test_work_that_was_given_up_under_a_letter_is_in_order(database: Database, run_id: int) -> None:
    _bury(database, run_id)

    assert _faults(database) == []


def test_a_letter_about_work_that_goes_on_is_seen(database: Database, run_id: int) -> None:
    _bury(database, run_id)
    with database.write() as tx:
        tx.execute(sa.update(handler_runs).values(next_try_at=tx.now))

    assert _faults(database) == [f"handler {run_id} has an open letter, and goes on"]


def test_a_redrive_that_took_nothing_up_is_seen(database: Database, run_id: int) -> None:
    letter = _bury(database, run_id)
    with database.write() as tx:
        mark_redriven(tx, letter, by="somebody")

    assert _faults(database) == [f"handler {run_id} was given up, and has no open letter"]


def test_a_parked_event_without_a_letter_is_seen_unless_it_tells_of_one(database: Database) -> None:
    with database.write() as tx:
        event = append_event(tx, EventType.JOB_SUCCEEDED, tenant="acme", data={})
        append_event(tx, EventType.DEAD_LETTER_CREATED, tenant="acme", data={})
        tx.execute(sa.update(outbox).values(parked_at=tx.now))

    assert _faults(database) == [f"event {event} was given up, and has no open letter"]


def test_letters_are_listed_with_how_often_they_were_told_of(database: Database, run_id: int) -> None:
    letter = _bury(database, run_id)

    with database.read() as tx:
        (found,) = list_letters(tx)
        assert count_announced(tx) == {letter: 1}
    assert is_waiting(found)


def test_what_is_done_is_listed_with_when_it_was(database: Database, run_id: int) -> None:
    with database.write() as tx:
        tx.execute(sa.update(handler_runs).values(done_at=tx.now))
        now = tx.now

    with database.read() as tx:
        assert list_done(tx) == {str(run_id): str(now)}
