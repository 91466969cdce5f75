"""A redrive of many dead letters: at its rate, resumable, and once for each letter."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from jobs.clock import FakeClock
from jobs.core.errors import Conflict, NotFound, Unprocessable
from jobs.services.keys import Principal, Role
from jobs.services.letters.bulk_redrives import NewRedrive, begin_redrive, cancel_redrive, read_redrive, read_redrives
from jobs.services.letters.dead_letters import LetterFilter, discard, redrive
from jobs.services.letters.redriving import BATCH, LEASE, MAX_STARTS, advance
from jobs.services.runtime import Runtime
from jobs.storage import redrives
from jobs.storage.database import Database, Transaction
from jobs.storage.dead_letters import dead_letter
from jobs.storage.schema import dead_letters
from tests.factories import TENANT, new_job
from tests.fakes.runtime import a_runtime

OPERATOR = Principal(TENANT, Role.OPERATOR, "key_1")
ADMIN = Principal(TENANT, Role.ADMIN, "key_2")
STRANGER = Principal("globex", Role.ADMIN, "key_3")
FAST = NewRedrive(rate_per_s=100)


class Killed(BaseException):
    """The worker dies here."""


class Acts:
    """A kind of letter whose redrive is remembered."""

    def __init__(self) -> None:
        self.refs: list[str] = []
        self.dies_at: str | None = None
        self.breaks_at: str | None = None
        self.over: set[str] = set()

    def __call__(self, _tx: Transaction, letter: Mapping[str, Any]) -> str | None:
        if letter["ref"] == self.dies_at:
            raise Killed
        if letter["ref"] == self.breaks_at:
            raise RuntimeError("broken")
        if letter["ref"] in self.over:
            return "it is over"
        self.refs.append(letter["ref"])
        return None


@pytest.fixture
def acts() -> Acts:
    return Acts()


@pytest.fixture
def runtime(database: Database, acts: Acts) -> Runtime:
    runtime = a_runtime(database)
    runtime.redrivers = {"test": acts}
    return runtime


def letters(database: Database, count: int, *, start: int = 0, **fields: Any) -> list[str]:
    """Open letters ``r0``, ``r1`` …; their ids."""
    facts = {"reason": "it failed", "attempts": 5, "tenant": TENANT, **fields}
    ids = []
    for number in range(start, start + count):
        with database.write() as tx:
            ids.append(dead_letter(tx, "test", f"r{number}", **facts))
        if isinstance(database.clock, FakeClock):
            database.clock.advance(timedelta(milliseconds=1))  # ids sort by it
    return ids


def finish(runtime: Runtime, clock: FakeClock, *, at_most: int = 200) -> int:
    """Sweeps each second until nothing is left; how many seconds that took."""
    for second in range(at_most):
        if all(
            row["state"] != "running" for row in read_redrives(runtime.database, ADMIN, cursor=None, limit=9)["data"]
        ):
            return second
        while advance(runtime) == BATCH:
            pass
        clock.advance(1)
    raise AssertionError("it never ends")


def row_of(database: Database, letter_id: str) -> Mapping[str, Any]:
    with database.read() as tx:
        row = tx.row(sa.select(dead_letters).where(dead_letters.c.id == letter_id))
    assert row is not None
    return row


def test_every_open_letter_has_its_turn_at_the_rate_asked_for(
    runtime: Runtime, database: Database, clock: FakeClock, acts: Acts
) -> None:
    """F62: a thousand at once would be the next outage; due times in the database keep the rate, not countdowns."""
    letters(database, 40)

    begun = begin_redrive(runtime, OPERATOR, NewRedrive(rate_per_s=5), key=None).redrive
    assert (begun["state"], begun["total"], begun["done"], begun["rate"]) == ("running", 40, 0, "5/s")
    advance(runtime)
    at_once = len(acts.refs)
    clock.advance(1)
    advance(runtime)
    after_a_second = len(acts.refs)
    seconds = finish(runtime, clock)

    assert at_once == 1
    assert 4 <= after_a_second - at_once <= 6
    assert 6 <= seconds <= 9
    assert sorted(acts.refs) == sorted(f"r{number}" for number in range(40))
    ended = read_redrive(database, OPERATOR, begun["id"])
    assert (ended["state"], ended["redriven"], ended["noop"], ended["failed"], ended["done"]) == ("done", 40, 0, 0, 40)
    assert ended["finished_at"] is not None


def test_a_sweep_that_was_away_for_an_hour_makes_one_second_good(
    runtime: Runtime, database: Database, clock: FakeClock, acts: Acts
) -> None:
    letters(database, 30)
    begin_redrive(runtime, OPERATOR, NewRedrive(rate_per_s=10), key=None)

    clock.advance(timedelta(hours=1))
    advance(runtime)

    assert len(acts.refs) == 11


@pytest.mark.invariant("I11")
def test_letters_that_come_later_are_left_alone(
    runtime: Runtime, database: Database, clock: FakeClock, acts: Acts
) -> None:
    letters(database, 2)
    begun = begin_redrive(runtime, OPERATOR, FAST, key=None).redrive
    clock.advance(1)
    (late,) = letters(database, 1, start=9)

    finish(runtime, clock)

    assert acts.refs == ["r0", "r1"]
    assert row_of(database, late)["redriven_at"] is None
    assert read_redrive(database, OPERATOR, begun["id"])["total"] == 2


@pytest.mark.invariant("I11")
def test_what_somebody_else_decides_meanwhile_is_a_noop_that_says_why(
    runtime: Runtime, database: Database, clock: FakeClock, acts: Acts
) -> None:
    first, second, _third = letters(database, 3)
    acts.over = {"r2"}
    begun = begin_redrive(runtime, OPERATOR, FAST, key=None).redrive
    redrive(runtime, OPERATOR, first)
    discard(runtime, OPERATOR, second)

    finish(runtime, clock)

    ended = read_redrive(database, OPERATOR, begun["id"])
    assert (ended["done"], ended["redriven"], ended["noop"]) == (3, 0, 3)
    assert ended["reasons"] == {
        "it was redriven before, by key_1": 1,
        "it was discarded before, by key_1": 1,
        "it is over": 1,
    }
    assert acts.refs == ["r0"]


@pytest.mark.invariant("I11")
def test_two_at_once_over_the_same_letters_and_a_person_beside_them_act_once_for_each(
    database_url: str,
) -> None:
    """F62, raced: three workers, two redrives, and single redrives of the same letters."""
    database = Database.connect(database_url)
    acts, lock = Acts(), threading.Lock()

    def act(tx: Transaction, letter: Mapping[str, Any]) -> str | None:
        with lock:
            return acts(tx, letter)

    runtime = a_runtime(database)
    runtime.redrivers = {"test": act}
    ids = letters(database, 30)
    begun = [begin_redrive(runtime, OPERATOR, FAST, key=None).redrive["id"] for _ in range(2)]
    barrier = threading.Barrier(4)

    def sweep() -> None:
        barrier.wait(10)
        for _ in range(400):
            advance(runtime, 5)
            if all(read_redrive(database, OPERATOR, each)["state"] == "done" for each in begun):
                return

    def press() -> int:
        barrier.wait(10)
        return sum(redrive(runtime, OPERATOR, each).why_not is None for each in reversed(ids))

    with ThreadPoolExecutor(4) as pool:
        sweeps = [pool.submit(sweep) for _ in range(3)]
        pressed = pool.submit(press).result(60)
        for each in sweeps:
            each.result(60)

    ended = [read_redrive(database, OPERATOR, each) for each in begun]
    assert sorted(acts.refs) == sorted(f"r{number}" for number in range(30))
    assert [each["done"] for each in ended] == [30, 30]
    assert pressed + sum(each["redriven"] for each in ended) == 30
    assert sum(each["failed"] for each in ended) == 0
    database.close()


@pytest.mark.invariant("I11")
def test_a_worker_that_dies_loses_the_letter_it_was_at_and_who_comes_next_goes_on_there(
    runtime: Runtime, database: Database, clock: FakeClock, acts: Acts
) -> None:
    letters(database, 6)
    acts.dies_at = "r3"
    begun = begin_redrive(runtime, OPERATOR, FAST, key=None).redrive
    clock.advance(1)
    with pytest.raises(Killed):
        advance(runtime)

    assert advance(runtime) == 0  # the dead worker's lease has not ended
    acts.dies_at = None
    clock.advance(LEASE)
    finish(runtime, clock)

    assert acts.refs == [f"r{number}" for number in range(6)]
    assert read_redrive(database, OPERATOR, begun["id"])["redriven"] == 6


def test_a_letter_that_kills_its_worker_each_time_ends_the_redrive_after_three_starts(
    runtime: Runtime, database: Database, clock: FakeClock, acts: Acts
) -> None:
    """F58 for the redrive itself."""
    (first, killer) = letters(database, 2)
    acts.dies_at = "r1"
    begun = begin_redrive(runtime, OPERATOR, FAST, key=None).redrive
    for _ in range(MAX_STARTS):
        clock.advance(LEASE)
        with pytest.raises(Killed):
            advance(runtime)

    clock.advance(LEASE)
    advance(runtime)

    ended = read_redrive(database, OPERATOR, begun["id"])
    assert (ended["state"], ended["redriven"]) == ("failed", 1)
    assert first in ended["error"]
    assert row_of(database, killer)["redriven_at"] is None


def test_a_letter_that_breaks_is_counted_and_the_others_have_their_turn(
    runtime: Runtime, database: Database, clock: FakeClock, acts: Acts
) -> None:
    _, bad, _ = letters(database, 3)
    acts.breaks_at = "r1"
    begun = begin_redrive(runtime, OPERATOR, FAST, key=None).redrive

    finish(runtime, clock)

    ended = read_redrive(database, OPERATOR, begun["id"])
    assert (ended["redriven"], ended["failed"], ended["reasons"]) == (2, 1, {"it raised RuntimeError": 1})
    assert row_of(database, bad)["redriven_at"] is None
    assert row_of(database, bad)["discarded_at"] is None


def test_the_letter_names_who_asked_and_in_which_redrive(
    runtime: Runtime, database: Database, clock: FakeClock
) -> None:
    (letter,) = letters(database, 1)
    begun = begin_redrive(runtime, OPERATOR, FAST, key=None).redrive

    finish(runtime, clock)

    assert row_of(database, letter)["redriven_by"] == f"key_1, {begun['id']}"


def test_a_canceled_redrive_stops_where_it_is(
    runtime: Runtime, database: Database, clock: FakeClock, acts: Acts
) -> None:
    letters(database, 5)
    begun = begin_redrive(runtime, OPERATOR, NewRedrive(rate_per_s=1), key=None).redrive
    advance(runtime)

    ended = cancel_redrive(runtime, OPERATOR, begun["id"])
    clock.advance(60)
    advance(runtime)

    assert (ended["state"], ended["done"]) == ("canceled", 1)
    assert acts.refs == ["r0"]
    with pytest.raises(Conflict):
        cancel_redrive(runtime, OPERATOR, begun["id"])


def test_no_writer_waits_while_letters_are_counted(
    runtime: Runtime, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite has one, and among many letters the count takes longer than the others have patience."""
    letters(database, 1)
    count, writers = redrives.count_letters, []

    def count_and_look(*args: Any, **named: Any) -> tuple[int, str | None]:
        writers.append(database.find_writer())
        return count(*args, **named)

    monkeypatch.setattr(redrives, "count_letters", count_and_look)

    begin_redrive(runtime, OPERATOR, FAST, key=None)

    assert writers == [None]


def test_one_key_is_one_redrive(runtime: Runtime, database: Database) -> None:
    letters(database, 1)
    wanted = NewRedrive(LetterFilter(kind="test"))

    first, again = (begin_redrive(runtime, OPERATOR, wanted, key="k") for _ in range(2))

    assert (first.replayed, again.replayed) == (False, True)
    assert again.redrive["id"] == first.redrive["id"]
    with pytest.raises(Unprocessable):
        begin_redrive(runtime, OPERATOR, NewRedrive(LetterFilter(kind="other")), key="k")
    assert not begin_redrive(runtime, STRANGER, wanted, key="k").replayed


def test_of_equal_requests_at_once_one_makes_the_redrive(database_url: str) -> None:
    database = Database.connect(database_url)
    runtime = a_runtime(database)
    letters(database, 1)
    barrier = threading.Barrier(4)

    def ask() -> tuple[str, bool]:
        barrier.wait(10)
        begun = begin_redrive(runtime, OPERATOR, FAST, key="k")
        return begun.redrive["id"], begun.replayed

    with ThreadPoolExecutor(4) as pool:
        answers = [each.result(30) for each in [pool.submit(ask) for _ in range(4)]]

    assert len({redrive_id for redrive_id, _ in answers}) == 1
    assert [replayed for _, replayed in answers].count(False) == 1
    database.close()


def test_nothing_that_fits_is_done_at_once(runtime: Runtime) -> None:
    begun = begin_redrive(runtime, OPERATOR, FAST, key=None).redrive

    assert (begun["state"], begun["total"]) == ("done", 0)
    assert advance(runtime) == 0


def test_a_redrive_touches_its_tenants_letters_only(
    runtime: Runtime, database: Database, clock: FakeClock, acts: Acts
) -> None:
    letters(database, 1)
    letters(database, 1, start=1, tenant="globex")
    letters(database, 1, start=2, tenant=None)

    begun = begin_redrive(runtime, OPERATOR, FAST, key=None).redrive
    finish(runtime, clock)
    assert acts.refs == ["r0"]
    with pytest.raises(NotFound):
        read_redrive(database, STRANGER, begun["id"])

    of_admin = begin_redrive(runtime, ADMIN, FAST, key=None).redrive
    finish(runtime, clock)
    assert acts.refs == ["r0", "r2"]  # an admin's are those of nobody too
    with pytest.raises(NotFound):
        read_redrive(database, OPERATOR, of_admin["id"])


def test_filters_choose(runtime: Runtime, database: Database, clock: FakeClock) -> None:
    job_id = new_job(database)["id"]
    letters(database, 1, job_id=job_id)
    clock.advance(60)
    since = clock.now()
    letters(database, 1, start=1, evidence={"provider": "tunes"}, reason="Timeout after 50% of it")
    letters(database, 1, start=2, evidence={"endpoint_id": "ep_1"})

    def found(**wanted: Any) -> int:
        body = NewRedrive(LetterFilter(**wanted))
        total: int = begin_redrive(runtime, OPERATOR, body, key=None).redrive["total"]
        return total

    assert found() == found(kind="test") == 3
    assert found(kind="other") == 0
    assert found(job_id=job_id) == found(provider="renders") == 1
    assert found(provider="tunes") == found(reason="timeout AFTER 50%") == 1
    assert found(reason="50_ of") == 0
    assert found(endpoint_id="ep_1") == 1
    assert found(since=since) == 2
    assert found(until=since) == 1
