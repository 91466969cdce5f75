"""Budgets and claims: what may be asked of an account, shared fairly, spent in the claim's own transaction."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import timedelta

import pytest
import sqlalchemy as sa

from jobs.clock import FakeClock
from jobs.core.errors import Stale
from jobs.core.policy import Policy
from jobs.services.accounts import budgets
from jobs.services.claims import claim_due
from jobs.services.submitting.submission import submit_job
from jobs.storage.accounts import find_account, lock_account, update_account
from jobs.storage.database import Database, Transaction
from jobs.storage.jobs import lock_job
from tests.factories import PROVIDER
from tests.fakes.stage import Stage, a_stage
from tests.services.waiting import wait_until

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def rated(database: Database, clock: FakeClock, **policy: object) -> Stage:
    return a_stage(database, clock, policy=Policy(**policy))  # type: ignore[arg-type]


def set_paused(stage: Stage, name: str, *, paused: bool) -> None:
    with stage.database.write() as tx:
        lock_account(tx, name)
        update_account(tx, name, paused_at=tx.now if paused else None)


def claimed(stage: Stage, limit: int = 100, kind: str = "submit") -> list[str]:
    return [job_id for job_id, _token in claim_due(stage.runtime, kind, limit)]


def test_without_a_budget_everything_due_is_claimed(database: Database, clock: FakeClock) -> None:
    stage = a_stage(database, clock)
    jobs = [stage.new_job() for _ in range(5)]

    assert sorted(claimed(stage)) == sorted(jobs)
    assert claimed(stage) == []


def test_a_claim_is_bounded_and_takes_the_longest_due_first(database: Database, clock: FakeClock) -> None:
    stage = a_stage(database, clock)
    newer, older = stage.new_job(), stage.new_job(next_submit_at=clock.now() - SECOND)

    assert claimed(stage, limit=1) == [older]
    assert claimed(stage, limit=1) == [newer]


def test_a_lost_message_costs_the_lease_and_not_the_job(database: Database, clock: FakeClock) -> None:
    stage = a_stage(database, clock)
    job_id = stage.new_job()
    ((_, lost),) = claim_due(stage.runtime, "submit", 10)
    assert claimed(stage) == []

    clock.advance(31)
    ((again, token),) = claim_due(stage.runtime, "submit", 10)

    assert again == job_id
    assert str(submit_job(stage.runtime, job_id, lost)) == "nothing"
    assert str(submit_job(stage.runtime, job_id, token)) == "accepted"


def test_the_rate_is_kept_over_any_stretch_of_time(database: Database, clock: FakeClock) -> None:
    stage = rated(database, clock, rate_per_s=5.0)
    for _ in range(40):
        stage.new_job()
    per_pass = []
    for _ in range(20):
        per_pass.append(len(claimed(stage)))
        clock.advance(0.2)

    assert per_pass[0] == 5, "a second's worth may go at once"
    assert sum(per_pass) <= 5 + 5 * 4
    assert sum(per_pass) >= 5 * 4 - 1


@pytest.mark.parametrize(("rate_per_s", "every_s"), [(0.5, 2), (1.0, 1), (1 / 60, 60)])
def test_a_slow_rate_lets_one_through_at_a_time(
    database: Database, clock: FakeClock, rate_per_s: float, every_s: int
) -> None:
    stage = rated(database, clock, rate_per_s=rate_per_s)
    for _ in range(3):
        stage.new_job()

    assert len(claimed(stage)) == 1
    clock.advance(every_s - 0.01)
    assert len(claimed(stage)) == 0
    clock.advance(0.02)
    assert len(claimed(stage)) == 1


def test_time_without_requests_is_not_saved_up(database: Database, clock: FakeClock) -> None:
    stage = rated(database, clock, rate_per_s=2.0)
    stage.new_job()
    claimed(stage)
    clock.advance(3600)
    for _ in range(9):
        stage.new_job()

    assert len(claimed(stage)) == 2


def test_what_the_budget_does_not_allow_stays_due_in_its_order(database: Database, clock: FakeClock) -> None:
    stage = rated(database, clock, rate_per_s=1.0)
    first, second = (stage.new_job(next_submit_at=clock.now() - n * SECOND) for n in (2, 1))

    assert claimed(stage) == [first]
    assert stage.submit(second) == "nothing"
    assert stage.job(second)["next_submit_at"] == clock.now() - SECOND
    clock.advance(1)

    assert claimed(stage) == [second]


def test_a_message_without_a_token_spends_from_the_same_budget(database: Database, clock: FakeClock) -> None:
    stage = rated(database, clock, rate_per_s=1.0)
    first, second = stage.new_job(), stage.new_job()

    assert [stage.submit(first), stage.submit(second)] == ["accepted", "nothing"]


def test_concurrency_counts_the_work_under_way(database: Database, clock: FakeClock) -> None:
    stage = rated(database, clock, concurrency=2)
    for _ in range(4):
        stage.new_job()

    first = claim_due(stage.runtime, "submit", 10)
    assert len(first) == 2
    assert claimed(stage) == []
    submit_job(stage.runtime, *first[0])

    assert len(claimed(stage)) == 1


def test_a_dead_workers_place_is_free_again_when_its_lease_ends(database: Database, clock: FakeClock) -> None:
    stage = rated(database, clock, concurrency=1)
    stage.new_job()
    claimed(stage)
    clock.advance(31)

    assert len(claimed(stage)) == 1


def test_one_accounts_trouble_is_no_others(database: Database, clock: FakeClock) -> None:
    stage = a_stage(database, clock, others={"paused": Policy(), "blocked": Policy()})
    jobs = {name: stage.new_job(provider=name) for name in (PROVIDER, "paused", "blocked")}
    with database.write() as tx:
        budgets.block(tx, "blocked", timedelta(seconds=15))
    set_paused(stage, "paused", paused=True)

    assert claimed(stage) == [jobs[PROVIDER]]
    clock.advance(15)
    assert claimed(stage) == [jobs["blocked"]]
    set_paused(stage, "paused", paused=False)
    clock.advance(31)
    assert jobs["paused"] in claimed(stage)


def test_a_pause_between_claim_and_work_is_obeyed(database: Database, clock: FakeClock) -> None:
    stage = a_stage(database, clock)
    stage.new_job()
    ((job_id, token),) = claim_due(stage.runtime, "submit", 10)
    set_paused(stage, PROVIDER, paused=True)

    assert str(submit_job(stage.runtime, job_id, token)) == "nothing"

    assert stage.provider.calls == []
    assert stage.job(job_id)["lease_token"] is None
    assert stage.job(job_id)["submit_tries"] == 0


def test_a_block_is_never_shortened(database: Database, clock: FakeClock) -> None:
    with database.write() as tx:
        budgets.block(tx, PROVIDER, timedelta(hours=1))
        budgets.block(tx, PROVIDER, timedelta(seconds=1))

    with database.read() as tx:
        assert find_account(tx, PROVIDER)["blocked_until"] == clock.now() + timedelta(hours=1)


def test_providers_take_turns(database: Database, clock: FakeClock) -> None:
    """F50: a thousand jobs of one provider hold up nobody's single one."""
    stage = a_stage(database, clock, others={"small": Policy()})
    for _ in range(10):
        stage.new_job(next_submit_at=clock.now() - timedelta(hours=1))
    single = stage.new_job(provider="small")

    assert single in claimed(stage, limit=2)


def test_a_claim_whose_premise_fails_leases_nothing(database: Database, clock: FakeClock) -> None:
    stage = a_stage(database, clock)
    stage.new_job()

    def succeeded(_tx: Transaction) -> None:
        raise Stale("a newer epoch")

    with pytest.raises(Stale):
        claim_due(stage.runtime, "submit", 10, premise=succeeded)

    assert len(claimed(stage)) == 1


def test_sweepers_at_the_same_moment_share_the_jobs_and_the_budget(database: Database, clock: FakeClock) -> None:
    """F53: each due job is claimed once, and the rate is not spent twice."""
    stage = rated(database, clock, rate_per_s=8.0)
    for _ in range(20):
        stage.new_job()
    barrier, found = threading.Barrier(4), Counter[str]()

    def sweep() -> None:
        barrier.wait()
        found.update(claimed(stage))

    threads = [threading.Thread(target=sweep) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(found.values()) == 8
    assert set(found.values()) == {1}


@pytest.mark.parametrize("policy", [Policy(), Policy(concurrency=6)])
def test_a_claim_locks_its_account_before_any_job(postgres_url: str, clock: FakeClock, policy: Policy) -> None:
    """As whoever writes what a call came to does: the other way round the two would lock each other out."""
    database = Database.connect(postgres_url, clock=clock)
    stage = a_stage(database, clock, policy=policy)
    job_id = stage.new_job(next_submit_at=clock.now() - MINUTE)  # late: the account is given a pace
    waiting = sa.text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    claimer = threading.Thread(target=claimed, args=(stage,))

    def is_waited_for() -> bool:
        with database.read() as tx:
            return bool(tx.execute(waiting).scalar_one())

    with database.write() as tx:
        lock_account(tx, PROVIDER)
        claimer.start()
        wait_until(is_waited_for, within_s=10, what="the claim at our lock")
        tx.execute(sa.text("SET LOCAL lock_timeout = 1000"))
        assert lock_job(tx, job_id)["id"] == job_id
    claimer.join()

    assert stage.job(job_id)["lease_token"] is not None
    database.close()
