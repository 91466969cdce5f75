"""A provider is away: one alarm, few calls, nobody's tries used up, and everything home once it is back."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from jobs.clock import FakeClock
from jobs.core.breaker import FAILED_IN_A_ROW, PROBE_CAP
from jobs.core.errors import Transient
from jobs.core.policy import Policy
from jobs.ids import new_id
from jobs.net.http import NoAnswer
from jobs.providers.answers import AWAY, DECLINED
from jobs.services.accounts import outages, pacing
from jobs.services.canceling import request_cancel
from jobs.services.claims import claim_due
from jobs.services.polling import poll_job
from jobs.services.work import MAX_TRIES, MAX_UNANSWERED
from jobs.storage.accounts import count_due, find_account, lock_account, update_account
from jobs.storage.database import Database
from jobs.storage.schema import jobs as jobs_table
from jobs.storage.schema import outbox, provider_accounts
from tests.factories import PROVIDER, insert_test_job
from tests.fakes.arena import INPUT, an_arena
from tests.fakes.provider import Effect, raises
from tests.fakes.stage import Row, Stage, a_stage

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
GATEWAY = raises(Transient("answered: HTTP 502", slug=AWAY))
BLIP = raises(Transient("not an answer"))


@pytest.fixture
def stage(database: Database, clock: FakeClock) -> Stage:
    return a_stage(database, clock, others={"calm": Policy()})


def go_away(stage: Stage, effect: Effect = GATEWAY) -> None:
    for method in ("submit", "status", "cancel", "find"):
        stage.provider.always(method, effect)


def come_back(stage: Stage) -> None:
    for method in ("submit", "status", "cancel", "find"):
        stage.provider.heal(method)


def account(stage: Stage) -> Row:
    with stage.database.read() as tx:
        return find_account(tx, PROVIDER)


def alarms(stage: Stage) -> list[str]:
    return [row["type"] for row in stage.rows(outbox) if row["type"].startswith("provider.")]


def open_breaker(stage: Stage, jobs: int = 6) -> list[str]:
    """Running jobs, whose provider has gone away."""
    running = [stage.running_job()[0] for _ in range(jobs)]
    go_away(stage)
    for job_id in running[:5]:
        stage.poll(job_id)
    assert outages.is_away(account(stage))
    stage.provider.calls.clear()
    return running


def pass_time(stage: Stage, span: timedelta, *, every: timedelta = 20 * SECOND) -> None:
    """Sweeps, but not each second: hours of an outage are long."""
    end = stage.clock.now() + span
    while stage.clock.now() < end:
        stage.sweep()
        stage.clock.advance(every)


def wait_for_probe(stage: Stage) -> None:
    at: datetime = account(stage)["next_probe_at"]
    stage.clock.advance(max(at - stage.clock.now(), timedelta(0)))


# It opens -------------------------------------------------------------------------------------------------


def test_after_some_calls_in_a_row_that_met_nobody_no_call_leaves_and_one_alarm_is_given(stage: Stage) -> None:
    running = open_breaker(stage)
    new = stage.new_job()
    request_cancel(stage.runtime, running[0])
    stage.write(running[1], next_poll_at=stage.clock.now())

    done = [claim_due(stage.runtime, kind, 10) for kind in ("submit", "poll", "cancel")]
    said = [stage.submit(new), stage.cancel(running[0]), stage.poll(running[1])]

    assert done == [[], [], []]
    assert said == ["nothing"] * 3
    assert stage.provider.calls == []
    assert alarms(stage) == ["provider.outage_began"]


def test_another_provider_is_none_the_worse(stage: Stage) -> None:
    open_breaker(stage)
    calm, _run = stage.running_job(provider="calm")

    assert stage.poll(calm) == "same"


def test_one_job_whose_reads_always_fail_is_its_own_trouble(stage: Stage) -> None:
    """F25, F26: other jobs' calls succeed in between, or there is only this one to judge by."""
    sick, _run = stage.running_job()
    stage.provider.always("status", BLIP)

    for _ in range(3 * FAILED_IN_A_ROW):
        stage.clock.advance(MINUTE)
        stage.poll(sick)

    assert not outages.is_away(account(stage))
    assert stage.job(sick)["poll_failures"] == 3 * FAILED_IN_A_ROW


def test_a_lone_job_outlives_an_hour_in_which_nobody_is_answered(stage: Stage) -> None:
    """No breaker opens for one job: what it wants of its provider is not given up for that."""
    unsent, (wanted, _run) = stage.new_job(), stage.running_job()
    go_away(stage, BLIP)
    request_cancel(stage.runtime, wanted)

    pass_time(stage, timedelta(hours=1))
    assert not outages.is_away(account(stage))
    assert stage.letters() == []
    come_back(stage)
    pass_time(stage, 15 * MINUTE)

    assert stage.job(unsent)["provider_job_id"] is not None
    assert stage.job(wanted)["state"] == "canceled"


def test_what_is_never_answered_is_a_persons_in_the_end(stage: Stage) -> None:
    job_id = stage.new_job()
    go_away(stage, BLIP)

    pass_time(stage, timedelta(hours=4), every=MINUTE)

    (letter,) = stage.letters()
    assert (letter["kind"], letter["ref"], letter["attempts"]) == ("submit", job_id, MAX_UNANSWERED)


def test_a_call_that_fails_while_others_are_answered_is_given_up_soon(stage: Stage) -> None:
    job_id, _run = stage.running_job()
    stage.provider.always("cancel", BLIP)
    request_cancel(stage.runtime, job_id)

    stage.live(20 * MINUTE)

    (letter,) = stage.letters()
    assert (letter["kind"], letter["ref"], letter["attempts"]) == ("cancel", job_id, MAX_TRIES)


def test_a_submit_that_fails_while_others_are_taken_is_given_up_soon(stage: Stage) -> None:
    """Jobs that come home by webhook are never read: that the provider takes new ones is an answer as well."""
    taken, _run = stage.running_job()
    job_id = stage.new_job()
    stage.provider.always("submit", BLIP)

    for _ in range(60):
        stage.write(taken, submitted_at=stage.clock.now(), next_poll_at=None)
        stage.sweep()
        stage.clock.advance(20 * SECOND)

    (letter,) = stage.letters()
    assert (letter["kind"], letter["ref"], letter["attempts"]) == ("submit", job_id, MAX_TRIES)


def test_answers_that_say_no_are_no_outage(stage: Stage) -> None:
    """F27: 401 and 429 are answers."""
    jobs = [stage.running_job()[0] for _ in range(FAILED_IN_A_ROW)]
    stage.provider.always("status", raises(Transient("answered: HTTP 401", slug=DECLINED)))
    for job_id in jobs:
        stage.poll(job_id)
    stage.provider.always("status", raises(Transient("HTTP 429", retry_after=SECOND)))
    for job_id in jobs:
        stage.clock.advance(SECOND)
        stage.poll(job_id)

    assert account(stage)["failures"] is None
    assert alarms(stage) == []


def test_time_outs_of_several_jobs_are(stage: Stage) -> None:
    jobs = [stage.new_job() for _ in range(FAILED_IN_A_ROW)]
    stage.provider.always("submit", raises(NoAnswer("no answer came: timed out")))

    for job_id in jobs:
        stage.submit(job_id)

    assert outages.is_away(account(stage))
    assert account(stage)["outage_reason"] == "no answer came: timed out"


def test_while_calls_go_well_nothing_is_written_about_them(stage: Stage) -> None:
    job_id, _run = stage.running_job()
    stage.poll(job_id)

    rows = stage.rows(provider_accounts, name=PROVIDER)  # the claim has locked it
    assert [{name: value for name, value in row.items() if value} for row in rows] == [{"name": PROVIDER}]


# Half open ------------------------------------------------------------------------------------------------


def test_one_probe_at_a_time_goes_and_a_read_is_preferred(stage: Stage) -> None:
    running = open_breaker(stage)
    stage.new_job()
    request_cancel(stage.runtime, running[0])
    for job_id in running:
        stage.write(job_id, next_poll_at=stage.clock.now())
    wait_for_probe(stage)

    claims = {kind: claim_due(stage.runtime, kind, 10) for kind in ("submit", "cancel", "poll")}

    assert [len(claims[kind]) for kind in ("submit", "cancel", "poll")] == [0, 0, 1]
    assert claim_due(stage.runtime, "poll", 10) == []
    ((job_id, token),) = claims["poll"]
    assert str(poll_job(stage.runtime, job_id, token)) == "transient"
    assert [name for name, _ in stage.provider.calls] == ["status"]


def test_a_submit_is_the_probe_where_nothing_else_is_due(stage: Stage) -> None:
    open_breaker(stage)
    for row in stage.rows(jobs_table):
        stage.write(row["id"], next_poll_at=None)
    new = stage.new_job()
    come_back(stage)
    wait_for_probe(stage)

    stage.sweep()

    assert stage.job(new)["provider_job_id"] is not None
    assert alarms(stage) == ["provider.outage_began", "provider.outage_ended"]


def test_a_probe_whose_worker_died_is_followed_by_another(stage: Stage) -> None:
    running = open_breaker(stage)
    for job_id in running:
        stage.write(job_id, next_poll_at=stage.clock.now())
    wait_for_probe(stage)
    assert len(claim_due(stage.runtime, "poll", 10)) == 1  # and nobody ever works on it
    come_back(stage)

    stage.end_leases()
    stage.sweep()

    assert not outages.is_away(account(stage))


def test_a_paused_provider_is_not_probed_and_a_resume_does_not_close_the_breaker(stage: Stage) -> None:
    running = open_breaker(stage)
    stage.write(running[0], next_poll_at=stage.clock.now())
    with stage.database.write() as tx:
        lock_account(tx, PROVIDER)
        update_account(tx, PROVIDER, paused_at=tx.now)
    wait_for_probe(stage)
    assert claim_due(stage.runtime, "poll", 10) == []

    with stage.database.write() as tx:
        update_account(tx, PROVIDER, paused_at=None)

    assert outages.is_away(account(stage))
    assert len(claim_due(stage.runtime, "poll", 10)) == 1


def test_probes_use_up_nobodys_tries(stage: Stage) -> None:
    job_id = stage.new_job(deadline_at=stage.clock.now() + timedelta(days=9), next_alarm_at=None)
    go_away(stage)

    pass_time(stage, timedelta(hours=2), every=MINUTE)

    job = stage.job(job_id)
    assert (job["state"], job["review_reason"]) == ("pending", None)
    assert job["submit_tries"] < MAX_TRIES
    assert stage.letters() == []
    assert stage.provider.count("submit") > MAX_TRIES
    come_back(stage)
    pass_time(stage, 2 * MINUTE)
    assert stage.job(job_id)["provider_job_id"] is not None


def test_a_cancel_during_an_outage_is_done_after_it(stage: Stage) -> None:
    running = open_breaker(stage)
    request_cancel(stage.runtime, running[0])
    pass_time(stage, timedelta(minutes=30))
    come_back(stage)

    pass_time(stage, 2 * MINUTE)

    assert stage.job(running[0])["state"] == "canceled"
    assert stage.letters() == []


# Races ----------------------------------------------------------------------------------------------------


def together(count: int, work: Callable[[int], object]) -> None:
    barrier = threading.Barrier(count)

    def run(number: int) -> None:
        barrier.wait()
        work(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_however_many_see_it_at_once_there_is_one_alarm(stage: Stage) -> None:
    jobs = [stage.running_job()[0] for _ in range(12)]
    go_away(stage)
    for job_id in jobs:
        stage.make_due(job_id, "poll")

    together(6, lambda number: [poll_job(stage.runtime, job_id) for job_id in jobs[number::6]])
    assert alarms(stage) == ["provider.outage_began"]
    come_back(stage)
    entry = stage.runtime.providers[PROVIDER]

    def answer(number: int) -> None:
        with stage.database.write() as tx:
            outages.observe(tx, stage.runtime, entry, ref=f"job {number}", answer=None)

    together(6, answer)

    assert alarms(stage) == ["provider.outage_began", "provider.outage_ended"]


def test_of_sweepers_at_the_same_moment_one_gets_the_probe(stage: Stage) -> None:
    for job_id in open_breaker(stage):
        stage.write(job_id, next_poll_at=stage.clock.now())
    wait_for_probe(stage)
    found: list[tuple[str, str]] = []

    together(4, lambda _number: found.extend(claim_due(stage.runtime, "poll", 10)))

    assert len(found) == 1


# Afterwards -----------------------------------------------------------------------------------------------


def pile_up(stage: Stage, count: int) -> list[str]:
    """Running jobs whose polls are all due."""
    due = {"next_submit_at": None, "next_poll_at": stage.clock.now()}
    with stage.database.write() as tx:
        return [insert_test_job(tx, **due, provider_job_id=new_id("p", at=tx.now))["id"] for _ in range(count)]


def histogram(stage: Stage, seconds: int, *, tick: float = 0.37) -> Counter[int]:
    """New claims in each second of the clock, with several ticks in it."""
    per_second: Counter[int] = Counter()
    begun, known = stage.clock.now(), set[str]()
    while stage.clock.now() < begun + seconds * SECOND:
        second = int((stage.clock.now() - begun.replace(microsecond=0)).total_seconds())
        claimed = {job_id for job_id, _token in claim_due(stage.runtime, "poll", 200)}
        per_second[second] += len(claimed - known)
        known |= claimed
        stage.clock.advance(tick)
    return per_second


def test_after_an_outage_no_second_holds_more_than_a_twentieth_of_what_piled_up(stage: Stage) -> None:
    pile_up(stage, 1000)
    with stage.database.write() as tx:
        lock_account(tx, PROVIDER)
        update_account(tx, PROVIDER, outage_at=tx.now - MINUTE, next_probe_at=tx.now)
    ((job_id, token),) = claim_due(stage.runtime, "poll", 200)
    poll_job(stage.runtime, job_id, token)  # the provider does not know the run, which is an answer
    assert not outages.is_away(account(stage))
    claimed = histogram(stage, 21)

    assert max(claimed.values()) <= 50
    assert sum(claimed.values()) >= 980, "and it takes no longer than it must"


def test_after_a_downtime_of_ours_neither(stage: Stage) -> None:
    pile_up(stage, 1000)
    stage.clock.advance(timedelta(minutes=20))

    claimed = histogram(stage, 21)

    assert max(claimed.values()) <= 50
    assert sum(claimed.values()) == 1000


def test_work_that_comes_faster_than_the_pace_is_not_late_for_ever(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pacing, "LEAST_PER_S", 2)
    pile_up(stage, 20)
    stage.clock.advance(MINUTE)
    left = 0

    for _ in range(3 * int(pacing.SPAN.total_seconds()) // 2):  # two seconds each
        pile_up(stage, 6)
        for _ in range(2):
            claimed = claim_due(stage.runtime, "poll", 200)
            with stage.database.write() as tx:
                done = jobs_table.c.id.in_([job_id for job_id, _token in claimed])
                tx.execute(jobs_table.update().where(done).values(next_poll_at=None, lease_until=None))
                left = count_due(tx, PROVIDER, most=10_000)
            stage.clock.advance(SECOND)

    assert left < 6


def test_a_backlog_of_hours_does_not_outgrow_its_column(stage: Stage) -> None:
    """A pace doubles for as long as anything is late, which behind a small concurrency is nobody's fault."""
    pile_up(stage, 40)

    for _ in range(80):
        stage.clock.advance(pacing.SPAN)
        assert len(claim_due(stage.runtime, "poll", 2)) == 2

    assert account(stage)["pace_per_s"] <= pacing.MOST_PER_S


def test_what_is_due_in_time_has_no_pace(stage: Stage) -> None:
    pile_up(stage, 150)
    stage.clock.advance(SECOND)

    assert len(claim_due(stage.runtime, "poll", 200)) == 150


def test_a_small_pile_is_worked_off_at_once(stage: Stage) -> None:
    pile_up(stage, pacing.LEAST_PER_S)
    stage.clock.advance(timedelta(hours=1))

    assert len(claim_due(stage.runtime, "poll", 200)) == pacing.LEAST_PER_S


class Gateway:
    """Stands before a provider, and answers 502 for it while it is down."""

    def __init__(self) -> None:
        self.is_down = False
        self.calls = 0
        self.app: Any = None

    def before(self, app: Any) -> Gateway:
        self.app = app
        return self

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        if not self.is_down:
            return self.app(environ, start_response)
        self.calls += 1
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        start_response("502 Bad Gateway", [("Content-Type", "text/html")])
        return [b"<html>502 Bad Gateway</html>"]


@pytest.mark.timeout(120)
def test_the_simulator_behind_a_gateway_that_answers_502_to_everything(database: Database, clock: FakeClock) -> None:
    """F25: over real HTTP, webhooks and all: one alarm, few calls, every job home by one run."""
    gateway = Gateway()
    with an_arena(database, clock, behind=gateway.before) as arena:
        stage = arena.stage
        jobs = [stage.running_job(input={**INPUT, "n": number})[0] for number in range(6)]
        gateway.is_down = True
        jobs += [stage.new_job(input={**INPUT, "n": number}) for number in range(6, 12)]
        pass_time(stage, 90 * SECOND, every=5 * SECOND)
        calls, gateway.is_down = gateway.calls, False

        pass_time(stage, 80 * SECOND, every=4 * SECOND)
        for run in arena.runs:
            arena.complete(run)

        assert calls <= 5 + 8
        assert {stage.job(job_id)["state"] for job_id in jobs} == {"succeeded"}
        assert len(arena.runs) == 12, "I13"
        assert alarms(stage) == ["provider.outage_began", "provider.outage_ended"]
        assert stage.letters() == []


def test_an_outage_from_start_to_end(database: Database, clock: FakeClock) -> None:
    """Twelve jobs, ten minutes away: one alarm, a probe a minute, everything home, nothing dead."""
    stage = a_stage(database, clock, policy=Policy(deadline=timedelta(hours=4)))
    far = {"deadline_at": clock.now() + timedelta(hours=4), "next_alarm_at": clock.now() + timedelta(hours=4)}
    jobs = [stage.running_job(**far)[0] for _ in range(6)] + [stage.new_job(**far) for _ in range(6)]
    go_away(stage)
    stage.provider.calls.clear()

    pass_time(stage, timedelta(minutes=10), every=5 * SECOND)
    asked = len(stage.provider.calls)
    come_back(stage)
    pass_time(stage, 2 * PROBE_CAP, every=3 * SECOND)
    for run in stage.provider.runs:
        stage.provider.finish(run)
    pass_time(stage, timedelta(minutes=2), every=5 * SECOND)

    assert asked < 5 + 2 * 10 + 10
    assert {stage.job(job_id)["state"] for job_id in jobs} == {"succeeded"}
    assert alarms(stage) == ["provider.outage_began", "provider.outage_ended"]
    assert stage.letters() == []
    assert len(stage.provider.runs) == 12, "I13: one run each"
