"""One alarm when dead letters surge, and one word when that is over."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from homing.doctor.database_facts import read_database
from homing.doctor.diagnosis import diagnose
from homing.doctor.facts import Facts
from homing.health.fleet import examine
from jobs.broker import RELAY
from jobs.clock import FakeClock
from jobs.services.letters.growth import watch_growth
from jobs.services.runtime import Runtime
from jobs.storage.database import Database
from jobs.storage.dead_letters import dead_letter, find_open
from jobs.storage.letter_decisions import mark_redriven
from jobs.storage.schema import outbox
from tests.factories import TENANT
from tests.fakes.broker import RecordingBroker
from tests.fakes.runtime import a_runtime


@pytest.fixture
def broker() -> RecordingBroker:
    return RecordingBroker()


@pytest.fixture
def runtime(database: Database, broker: RecordingBroker) -> Runtime:
    return a_runtime(database, broker=broker, environ={"HOMING_DEAD_LETTER_ALARM": "4/10m"})


def die(database: Database, count: int, *, start: int = 0) -> None:
    with database.write() as tx:
        for number in range(start, start + count):
            dead_letter(tx, "inbox", f"r{number}", reason="r", attempts=1, tenant=TENANT)


def told(database: Database) -> list[tuple[str, Any]]:
    with database.read() as tx:
        rows = tx.rows(sa.select(outbox).where(outbox.c.tenant.is_(None)).order_by(outbox.c.row_id))
    return [(row["type"], row["data"]["dead_letters"]) for row in rows]


def test_a_surge_is_told_once_and_its_end_once(
    runtime: Runtime, database: Database, clock: FakeClock, broker: RecordingBroker
) -> None:
    die(database, 3)
    assert not watch_growth(runtime)

    die(database, 1, start=3)
    assert watch_growth(runtime)
    assert broker.take(RELAY) == [()]
    die(database, 5, start=4)
    assert not watch_growth(runtime)  # told already

    clock.advance(timedelta(minutes=10, seconds=1))
    die(database, 3, start=9)
    assert not watch_growth(runtime)  # fewer, but not half as many: no flapping at the edge
    clock.advance(timedelta(minutes=10, seconds=1))
    assert watch_growth(runtime)
    assert not watch_growth(runtime)

    surged = {"count": 4, "window_s": 600.0, "kinds": {"inbox": 4}}
    subsided = {"count": 0, "window_s": 600.0, "kinds": {}}
    assert told(database) == [("dead_letter.surged", surged), ("dead_letter.subsided", subsided)]


def test_the_next_surge_is_told_anew(runtime: Runtime, database: Database, clock: FakeClock) -> None:
    for start in (0, 10):
        die(database, 4, start=start)
        assert watch_growth(runtime)
        clock.advance(timedelta(minutes=11))
        assert watch_growth(runtime)

    assert [name for name, _ in told(database)] == ["dead_letter.surged", "dead_letter.subsided"] * 2


def test_fleet_and_doctor_are_red_while_it_lasts(runtime: Runtime, database: Database, clock: FakeClock) -> None:
    def reasons() -> str:
        return " ".join(examine(database, redis_fault=lambda: None).reasons)

    def findings() -> str:
        facts = Facts(data_dir="d", database=read_database(database))
        return " ".join(finding.what for finding in diagnose(facts))

    assert "faster than they should" not in reasons() + findings()
    die(database, 4)
    watch_growth(runtime)
    clock.advance(90)

    assert "dead letters have come faster than they should for 1m 30s" in reasons()
    assert "dead letters have come faster than they should for 90 s" in findings()
    clock.advance(timedelta(minutes=11))
    watch_growth(runtime)
    assert "faster than they should" not in reasons() + findings()


def test_what_was_dealt_with_counts_as_well(runtime: Runtime, database: Database) -> None:
    """A handler that fails and is redriven, and fails: the number of open letters stays small, the trouble does not."""
    for _ in range(4):
        die(database, 1)
        with database.write() as tx:
            letter = find_open(tx, "inbox", "r0")
            assert letter is not None
            mark_redriven(tx, letter["id"], by="key_1")

    assert watch_growth(runtime)
