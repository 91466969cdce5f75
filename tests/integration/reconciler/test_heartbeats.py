"""Heartbeats and watchdogs against real databases: one alarm for a silence, one for its end."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from jobs.broker import RELAY
from jobs.clock import FakeClock
from jobs.core.errors import Unavailable
from jobs.storage.database import Database
from jobs.storage.schema import outbox
from reconciler import heartbeats, watchdog
from reconciler.watchdog import Watchdog
from tests.fakes.broker import RecordingBroker
from tests.services.waiting import wait_until

SECOND = timedelta(seconds=1)
STALE_AFTER = 3 * SECOND + timedelta(seconds=10)


def beat(database: Database, *names: str, period: timedelta = SECOND) -> list[str]:
    with database.write() as tx:
        return heartbeats.beat(tx, dict.fromkeys(names, period))


def told(database: Database) -> list[tuple[str, str]]:
    with database.read() as tx:
        rows = tx.rows(sa.select(outbox).order_by(outbox.c.row_id))
    return [(row["type"], row["data"]["heartbeat"]["name"]) for row in rows]


def only(database: Database) -> heartbeats.Heartbeat:
    with database.read() as tx:
        (found,) = heartbeats.list_heartbeats(tx)
    return found


def test_a_heartbeat_is_stale_after_three_periods_and_ten_seconds(database: Database, clock: FakeClock) -> None:
    beat(database, "sweep.polls")

    clock.advance(STALE_AFTER)
    assert not only(database).is_stale(clock.now())
    assert not watchdog.run_once(database)

    clock.advance(timedelta(microseconds=1))
    assert only(database).is_stale(clock.now())
    assert watchdog.run_once(database).handled == 1


def test_a_silence_is_reported_once_and_its_end_once(database: Database, clock: FakeClock) -> None:
    """F55: missed for N intervals = one alert, recovery = one resolve."""
    beat(database, "sweep.polls", "sweep.inbox")
    for _ in range(5):
        clock.advance(STALE_AFTER)
        beat(database, "sweep.inbox")
        watchdog.run_once(database)

    assert told(database) == [("heartbeat.missed", "sweep.polls")]
    assert beat(database, "sweep.polls") == ["sweep.polls"]
    assert beat(database, "sweep.polls") == []
    watchdog.run_once(database)
    assert told(database) == [("heartbeat.missed", "sweep.polls"), ("heartbeat.recovered", "sweep.polls")]


def test_the_next_silence_is_reported_again(database: Database, clock: FakeClock) -> None:
    for _ in range(2):
        beat(database, "sweep.polls")
        clock.advance(STALE_AFTER + SECOND)
        watchdog.run_once(database)

    assert [event for event, _ in told(database)] == ["heartbeat.missed", "heartbeat.recovered", "heartbeat.missed"]


def test_a_beat_that_is_late_but_within_its_time_flaps_nothing(database: Database, clock: FakeClock) -> None:
    """F55: no flapping at the edge."""
    for _ in range(10):
        beat(database, "sweep.polls")
        clock.advance(STALE_AFTER)
        watchdog.run_once(database)

    assert told(database) == []


def test_many_watchdogs_at_once_report_once(database: Database, clock: FakeClock) -> None:
    beat(database, *(f"sweep.{number}" for number in range(5)))
    clock.advance(STALE_AFTER + SECOND)
    ready = threading.Barrier(4)
    counts: list[int] = []

    def look() -> None:
        ready.wait()
        counts.append(watchdog.run_once(database).handled)

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(counts) == 5
    assert sorted(told(database)) == [("heartbeat.missed", f"sweep.{number}") for number in range(5)]


def test_the_alarm_says_who_and_since_when(database: Database, clock: FakeClock) -> None:
    beat(database, "sweep.polls")
    clock.advance(60)
    watchdog.run_once(database)

    with database.read() as tx:
        event = tx.row(sa.select(outbox))
    assert event is not None
    assert (event["tenant"], event["sequence"], event["job_id"]) == (None, None, None)
    assert event["data"] == {
        "heartbeat": {
            "name": "sweep.polls",
            "period_s": 1.0,
            "last_beat_at": "2026-01-01T00:00:00.000000Z",
            "silent_s": 60.0,
        }
    }


def test_a_watchdog_that_read_before_a_beat_reports_nothing_after_it(database: Database, clock: FakeClock) -> None:
    beat(database, "sweep.polls")
    before = only(database)
    clock.advance(STALE_AFTER + SECOND)
    beat(database, "sweep.polls")

    with database.write() as tx:
        assert not heartbeats.mark_missed(tx, before)

    assert told(database) == []


def test_a_late_writer_moves_no_heartbeat_back(database: Database, clock: FakeClock) -> None:
    late = FakeClock(clock.now())
    clock.advance(30)
    beat(database, "sweep.polls")
    stalled = Database.connect(database.engine.url.render_as_string(hide_password=False), clock=late)

    beat(stalled, "sweep.polls")

    assert only(database).beat_at == clock.now()
    stalled.close()


def test_what_never_worked_is_missed_as_well(database: Database, clock: FakeClock) -> None:
    watch = Watchdog(database, expected={"queue.poll": SECOND})
    watch.look()
    clock.advance(STALE_AFTER + SECOND)

    assert watch.look().handled == 1

    assert told(database) == [("heartbeat.missed", "queue.poll")]


def test_a_fleet_that_was_switched_off_was_not_missing(database: Database, clock: FakeClock) -> None:
    beat(database, "sweep.polls")
    clock.advance(timedelta(hours=12))

    watch = Watchdog(database, expected={})
    assert not watch.look()
    clock.advance(STALE_AFTER)
    assert not watch.look()
    clock.advance(SECOND)
    assert watch.look().handled == 1


def test_an_alarm_is_rung_for_so_that_it_leaves_even_while_sweeps_are_dead(
    database: Database, clock: FakeClock
) -> None:
    broker = RecordingBroker()
    watch = Watchdog(database, broker=broker, expected={"sweep.outbox": SECOND})
    watch.look()
    clock.advance(timedelta(minutes=1))
    watch.look()
    watch.look()

    assert broker.take(RELAY) == [()]


def test_an_outage_is_said_once_and_survived(
    database: Database, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watchdog(database, expected={"sweep.polls": SECOND})
    watch.look()

    def away(*_: Any) -> Any:
        raise Unavailable("the database is not available")

    with capture_logs() as logs:
        with monkeypatch.context() as patch:
            patch.setattr(Database, "read", away)
            for _ in range(3):
                assert not watch.look()
        clock.advance(STALE_AFTER + SECOND)
        watch.look()
        watch.look()

    assert [log["event"] for log in logs] == ["watchdog cannot see", "heartbeat missed", "watchdog sees again"]


def test_a_watch_starts_and_stops(database: Database, clock: FakeClock) -> None:
    broker = RecordingBroker()
    beat(database, "sweep.polls")
    watch = Watchdog(database, broker=broker, expected={}, every_s=0.001)
    watch._listening_since = clock.now()
    clock.advance(timedelta(minutes=1))

    watch.start()
    wait_until(lambda: bool(broker.messages), within_s=5, what="the watch's bell")
    watch.stop()
    watch.stop()

    assert told(database) == [("heartbeat.missed", "sweep.polls")]
    assert not [thread for thread in threading.enumerate() if thread.name == "watchdog"]


def test_a_watch_that_never_began_can_be_stopped(database: Database) -> None:
    Watchdog(database).stop()
