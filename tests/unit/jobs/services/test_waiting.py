from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from jobs.core.errors import Unavailable
from jobs.services.waiting import WaitingRoom
from tests.services.waiting import wait_until

LONG = timedelta(seconds=30)
SHORT = timedelta(milliseconds=20)


class Versions:
    """A database that holds nothing but versions, and counts how often it is asked."""

    def __init__(self, **versions: int) -> None:
        self.versions = versions
        self.asked: list[list[str]] = []
        self.is_away = False
        self.looked = threading.Event()

    def __call__(self, job_ids: list[str]) -> Mapping[str, int]:
        self.asked.append(job_ids)
        self.looked.set()
        if self.is_away:
            raise Unavailable
        return {job_id: self.versions[job_id] for job_id in job_ids if job_id in self.versions}


def a_room(versions: Versions, *, seats: int = 4) -> WaitingRoom:
    return WaitingRoom(versions, seats=seats, period=timedelta(milliseconds=5))


def test_a_waiter_is_answered_when_the_version_changes() -> None:
    versions = Versions(job_1=3)
    room = a_room(versions)

    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(room.wait, "job_1", since=3, at_most=LONG)
        assert versions.looked.wait(5)
        versions.versions["job_1"] = 4

        assert waiting.result(timeout=5) is True


def test_a_waiter_whose_job_stays_as_it_is_goes_at_the_time_out() -> None:
    room = a_room(Versions(job_1=3))

    assert room.wait("job_1", since=3, at_most=SHORT) is False
    assert room.occupied == 0


def test_a_job_that_has_changed_before_anybody_looked_is_answered_at_once() -> None:
    room = a_room(Versions(job_1=4))

    assert room.wait("job_1", since=3, at_most=LONG) is True


def test_a_job_that_is_gone_counts_as_changed() -> None:
    room = a_room(Versions())

    assert room.wait("job_1", since=3, at_most=LONG) is True


def test_whoever_finds_no_seat_is_answered_at_once() -> None:
    versions = Versions(job_1=3)
    room = a_room(versions, seats=1)

    with ThreadPoolExecutor() as pool:
        first = pool.submit(room.wait, "job_1", since=3, at_most=LONG)
        wait_until(lambda: room.occupied == 1, within_s=5, what="the first waiter's arrival")

        assert room.wait("job_1", since=3, at_most=LONG) is False

        versions.versions["job_1"] = 4
        assert first.result(timeout=5) is True


def test_all_waiters_share_one_look() -> None:
    versions = Versions(job_1=1, job_2=1)
    room = a_room(versions)

    with ThreadPoolExecutor() as pool:
        waits = [pool.submit(room.wait, job_id, since=1, at_most=LONG) for job_id in ("job_1", "job_2", "job_1")]
        wait_until(lambda: ["job_1", "job_2"] in versions.asked, within_s=5, what="one look for both jobs")
        versions.versions |= {"job_1": 2, "job_2": 2}

        assert [wait.result(timeout=5) for wait in waits] == [True, True, True]


def test_nobody_looks_while_nobody_waits() -> None:
    versions = Versions(job_1=1)
    room = a_room(versions)

    room.wait("job_1", since=1, at_most=SHORT)

    def watchers() -> list[str]:
        return [thread.name for thread in threading.enumerate() if thread.name == "long-poll-watcher"]

    wait_until(lambda: not watchers(), within_s=5, what="the watcher's end")


def test_a_room_that_was_empty_watches_again() -> None:
    versions = Versions(job_1=1)
    room = a_room(versions)
    room.wait("job_1", since=1, at_most=SHORT)
    versions.versions["job_1"] = 2

    assert room.wait("job_1", since=1, at_most=LONG) is True


def test_waiters_outlive_an_outage_of_the_database() -> None:
    versions = Versions(job_1=1)
    versions.is_away = True
    room = a_room(versions)

    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(room.wait, "job_1", since=1, at_most=LONG)
        assert versions.looked.wait(5)
        versions.versions["job_1"] = 2
        versions.is_away = False

        assert waiting.result(timeout=5) is True
