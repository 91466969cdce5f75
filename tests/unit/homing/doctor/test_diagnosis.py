"""From facts to findings: what counts as wrong, and that each finding says what to do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homing.doctor.diagnosis import FEW_LETTERS, LONG_QUEUE, STARTING_S, STUCK_AFTER_S, Level, diagnose
from homing.doctor.facts import DatabaseFacts, Facts, RedisFacts, Silence

FRESH = (Silence("sweep.polls", 0.5, is_stale=False), Silence("queue.poll", 4.0, is_stale=False))
WELL = Facts(
    data_dir="/data",
    database=DatabaseFacts(jobs={"running": 3}, heartbeats=FRESH, due_s={"polls": 1.0}, inbox_oldest_s=0.2),
    redis=RedisFacts({"poll": 2}),
    processes={"web": True, "beat": True},
)


def with_database(**changes: object) -> Facts:
    assert WELL.database is not None
    return replace(WELL, database=replace(WELL.database, **changes))  # type: ignore[arg-type]


def test_a_healthy_fleet_has_no_findings() -> None:
    assert diagnose(WELL) == []


LATE = STUCK_AFTER_S + 1


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (replace(WELL, database=None, database_fault="refused"), "database cannot be read: refused"),
        (replace(WELL, database=None, database_fault="empty; `homing migrate`"), "database cannot be read"),
        (replace(WELL, redis=None, redis_fault="refused"), "Redis does not answer: refused"),
        (replace(WELL, redis=RedisFacts({"poll": LONG_QUEUE})), "queues are long: poll"),
        (replace(WELL, processes={"web": True, "beat": False}), "not running: beat"),
        (replace(WELL, stopped={"worker-io": (47, 11)}), "worker-io is stopped: process 47 11 lives"),
        (with_database(heartbeats=(Silence("sweep.polls", 99, is_stale=True),)), "no sign of life from sweep.polls"),
        (with_database(heartbeats=()), "nothing has ever swept"),
        (with_database(reviews={"overdue": 2}), "wait for a person: overdue 2"),
        (with_database(dead_letters={"inbox": 1}), "dead letters: inbox 1"),
        (with_database(due_s={"polls": LATE}), "due and not done: polls"),
        (with_database(overdue_leases=4), "4 jobs are held"),
        (with_database(inbox_oldest_s=LATE), "webhook has waited"),
        (with_database(delivery_oldest_s=LATE), "deliveries are due and not sent"),
        (with_database(writer=(4711, 12.0)), "process 4711 has held the database's write lock for 12 s"),
        (with_database(outbox_oldest_s=LATE), "event has waited"),
    ],
)
def test_each_trouble_is_wrong_and_has_a_remedy(facts: Facts, words: str) -> None:
    (finding,) = [each for each in diagnose(facts) if each.level is Level.WRONG]

    assert words in finding.what
    assert len(finding.remedy) > 10


def test_a_few_dead_letters_are_redriven_one_by_one_and_many_by_the_kind_there_is_most_of() -> None:
    (few,) = diagnose(with_database(dead_letters={"inbox": FEW_LETTERS}))
    (many,) = diagnose(with_database(dead_letters={"delivery": 40, "inbox": 2}))

    assert "redrive each" in few.remedy
    assert "`homing dead-letters redrive --all --kind delivery`" in many.remedy


@pytest.mark.parametrize("facts", [with_database(paused=("renders",)), with_database(parked=3)])
def test_what_somebody_chose_or_what_mends_itself_is_a_note(facts: Facts) -> None:
    (finding,) = diagnose(facts)

    assert finding.level is Level.NOTE


def test_a_missing_schema_is_a_matter_of_migrating() -> None:
    facts = replace(WELL, database=None, database_fault="the database is empty; `homing migrate` helps")

    assert diagnose(facts)[0].remedy == "run `homing migrate`"


def test_both_services_down_are_two_findings() -> None:
    facts = Facts("/data", database_fault="refused", redis_fault="refused")

    assert len(diagnose(facts)) == 2


def test_silence_without_a_fleet_here_is_told_apart_from_a_stuck_one() -> None:
    silent = with_database(heartbeats=(Silence("sweep.polls", 99, is_stale=True),))

    (stuck,) = diagnose(silent)
    (absent,) = diagnose(replace(silent, processes=None))

    assert "stuck" in stuck.remedy
    assert "no fleet runs from this folder" in absent.remedy


def test_a_handler_that_fails_is_wrong_long_before_its_dead_letter() -> None:
    (finding,) = diagnose(with_database(failing_handlers={"films.deliver": 2}))

    assert finding.level is Level.WRONG
    assert "films.deliver" in finding.what


def test_a_fleet_that_has_just_been_started_is_given_its_time() -> None:
    """What it finds waiting is not late, and nobody can have been heard of yet."""
    silent = (Silence("sweep.polls", 3600, is_stale=True), Silence("queue.poll", 3600, is_stale=True))
    facts = with_database(heartbeats=silent, due_s={"polls": LATE}, inbox_oldest_s=LATE)

    (finding,) = diagnose(replace(facts, up_s=8.0))

    assert finding.level is Level.NOTE
    assert "started 8 s ago" in finding.what
    assert len([each for each in diagnose(replace(facts, up_s=STARTING_S)) if each.level is Level.WRONG]) == 3


def test_a_fleet_that_was_never_heard_of_is_no_news_while_it_starts() -> None:
    facts = replace(with_database(heartbeats=()), up_s=2.0)

    assert [each.level for each in diagnose(facts)] == [Level.NOTE]


def test_a_provider_that_is_away_is_wrong_and_nothing_to_repair() -> None:
    (finding,) = diagnose(with_database(outages={"renders": 90.0}))

    assert finding.level is Level.WRONG
    assert finding.what == "a provider is away: renders for 90 s"


def test_a_redis_that_went_with_its_fleet_is_brought_back_by_a_fleet() -> None:
    (finding,) = diagnose(replace(WELL, redis=None, redis_fault="refused", processes=None))

    assert "start one with `homing up`" in finding.remedy
