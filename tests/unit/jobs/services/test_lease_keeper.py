"""Keeping a lease alive from a thread."""

from __future__ import annotations

import threading

from jobs.core.errors import Unavailable
from jobs.services.lease_keeper import LeaseKeeper


def test_the_lease_is_renewed_while_the_block_runs_and_not_after() -> None:
    renewed = threading.Event()
    count = 0

    def renew() -> bool:
        nonlocal count
        count += 1
        renewed.set()
        return True

    with LeaseKeeper(renew, every_s=0.001):
        assert renewed.wait(5)
    after = count

    assert not [thread for thread in threading.enumerate() if thread.name == "lease-keeper"]
    assert count == after


def test_short_work_costs_no_renewal() -> None:
    renewals: list[bool] = []

    with LeaseKeeper(lambda: bool(renewals.append(True)), every_s=60):
        pass

    assert renewals == []


def test_a_lost_lease_is_not_renewed_again() -> None:
    asked = threading.Semaphore(0)

    def lost() -> bool:
        asked.release()
        return False

    with LeaseKeeper(lost, every_s=0.001) as keeper:
        assert asked.acquire(timeout=5)
        keeper._thread.join(5)

    assert not asked.acquire(blocking=False)


def test_an_outage_of_the_database_does_not_end_the_renewing() -> None:
    def away() -> bool:
        raise Unavailable("no database")

    assert LeaseKeeper(away, every_s=1).renew_once()
