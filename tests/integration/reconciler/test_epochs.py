"""Fencing against real databases (I7)."""

from __future__ import annotations

import threading

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.core.errors import Stale
from jobs.storage.database import Database
from jobs.storage.schema import counters
from reconciler.epochs import Epoch, begin


def write_as(database: Database, epoch: Epoch) -> bool:
    """A sweep's batch; whether it was written."""
    try:
        with database.write() as tx:
            tx.execute(sa.insert(counters).values(name=f"{epoch.name} {epoch.number}", value=1))
            epoch(tx)
            tx.execute(sa.delete(counters).where(counters.c.name == f"{epoch.name} {epoch.number}"))
    except Stale:
        return False
    return True


def test_epochs_are_counted_in_the_database_each_name_for_itself(database: Database) -> None:
    assert [begin(database, "due").number for _ in range(3)] == [1, 2, 3]
    assert begin(database, "inbox").number == 1


def test_a_stale_epochs_transaction_rolls_back_whole(database: Database) -> None:
    old = begin(database, "due")
    begin(database, "due")

    assert not write_as(database, old)

    with database.read() as tx:
        assert [row["name"] for row in tx.rows(sa.select(counters.c.name))] == ["epoch:due"]


@pytest.mark.invariant("I7")
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=25))
def test_only_the_newest_epoch_writes_in_whatever_order_sweepers_stall_and_wake(
    database: Database, steps: list[tuple[int, bool]]
) -> None:
    """Four sweepers, each beginning anew or writing on as if nothing had happened."""
    newest = begin(database, "due").number
    held: dict[int, Epoch] = {}
    for sweeper, begins in steps:
        if begins or sweeper not in held:
            held[sweeper] = begin(database, "due")
            assert held[sweeper].number == newest + 1
            newest += 1
        else:
            assert write_as(database, held[sweeper]) == (held[sweeper].number == newest)


@pytest.mark.invariant("I7")
def test_an_epoch_cannot_begin_between_a_batchs_check_and_its_commit(postgres_url: str) -> None:
    """PostgreSQL only: SQLite has one writer at a time."""
    database = Database.connect(postgres_url)
    old = begin(database, "due")
    began = threading.Event()

    def succeed() -> None:
        begin(database, "due")
        began.set()

    successor = threading.Thread(target=succeed)
    with database.write() as tx:
        old(tx)
        successor.start()
        assert not began.wait(0.2), "the check must hold the epoch until the commit"
    successor.join()

    assert not write_as(database, old)
    database.close()


def test_epochs_begun_at_once_are_all_different(database: Database) -> None:
    numbers: list[int] = []
    threads = [threading.Thread(target=lambda: numbers.append(begin(database, "due").number)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(numbers) == list(range(1, 9))
