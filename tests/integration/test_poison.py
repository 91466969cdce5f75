"""F58: whatever a task works on, a row that kills its worker is a dead letter after three starts, and waits grow.

A kill is an exception that nothing of ours may catch: what is left is what was committed before the work began. The
inbox has the same tests in `webhooks/incoming/applying/test_draining.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from structlog.testing import capture_logs

from jobs.clock import FakeClock
from jobs.core.events import EventType
from jobs.core.observations import Link
from jobs.core.states import JobState
from jobs.handlers import Handler
from jobs.net.guard import Guard
from jobs.services import relay
from jobs.services.artifacts import fetching as artifacts
from jobs.services.artifacts.fetching import fetch_artifact
from jobs.services.canceling import cancel_run, request_cancel
from jobs.services.extra_runs import stop_extra_run
from jobs.services.handling import claim_due_runs, run_handler
from jobs.services.keys import Principal, Role
from jobs.services.letters.dead_letters import redrive
from jobs.services.observe import DOUBLE_SUBMIT
from jobs.services.polling import poll_job
from jobs.services.submitting.submission import submit_job
from jobs.storage.database import Database, Transaction
from jobs.storage.outbox import append_event
from jobs.storage.premise import always
from jobs.storage.schema import artifacts as files
from jobs.storage.schema import dead_letters, extra_runs, handler_runs, outbox
from reconciler.sweeps.outbox import Outbox
from tests.factories import TENANT, seen
from tests.fakes.provider import Killed, raises
from tests.fakes.stage import Stage, a_stage
from tests.integration.webhooks.outgoing.world import World
from webhooks.outgoing.fan_out import fan_out
from webhooks.outgoing.schema import deliveries

STARTS = 3
#: Longer than any lease or wait of a few starts, shorter than what ends a handler's tries.
STEP = timedelta(minutes=3)


class Victim(NamedTuple):
    """Work that dies each time.

    Attributes:
        letter: (kind, ref) of its dead letter.
        start: What a worker does when the row's turn comes; dies, or does nothing.
    """

    letter: tuple[str, str]
    start: Callable[[], object]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with capture_logs():
        yield


@pytest.fixture
def stage(database: Database, clock: FakeClock, tmp_path: Path) -> Stage:
    stage = a_stage(database, clock)
    stage.runtime.settings = stage.runtime.settings.model_copy(update={"data_dir": tmp_path})
    stage.runtime.guard = Guard(lifted=True)
    return stage


def a_submit(stage: Stage, _monkeypatch: pytest.MonkeyPatch) -> Victim:
    job_id = stage.new_job()
    stage.provider.always("submit", raises(Killed()))
    return Victim(("submit", job_id), lambda: submit_job(stage.runtime, job_id))


def a_poll(stage: Stage, _monkeypatch: pytest.MonkeyPatch) -> Victim:
    job_id, _ = stage.running_job()
    stage.make_due(job_id, "poll")
    stage.provider.always("status", raises(Killed()))
    return Victim(("poll", job_id), lambda: poll_job(stage.runtime, job_id))


def a_cancel(stage: Stage, _monkeypatch: pytest.MonkeyPatch) -> Victim:
    job_id, _ = stage.running_job()
    request_cancel(stage.runtime, job_id)
    stage.provider.always("cancel", raises(Killed()))

    def start() -> None:
        stage.poll(job_id)  # polls that end well beside it wipe nothing out
        cancel_run(stage.runtime, job_id)

    return Victim(("cancel", job_id), start)


def a_file(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Victim:
    job_id, run = stage.running_job()
    stage.provider.finish(run, links=[Link("http://127.0.0.1:1/a.png")])
    stage.poll(job_id)
    (row,) = stage.rows(files, job_id=job_id)
    monkeypatch.setattr(artifacts, "fetch_file", dies)
    return Victim(("artifact", row["id"]), lambda: fetch_artifact(stage.runtime, row["id"]))


def an_extra_run(stage: Stage, _monkeypatch: pytest.MonkeyPatch) -> Victim:
    job_id, _ = stage.running_job()
    extra = stage.provider.begin(key="k", token=stage.attempt(job_id)["token"]).id
    with stage.database.write() as tx:
        stage.runtime.observer.observe(tx, job_id, seen(JobState.RUNNING, provider_job_id=extra, at=tx.now))
    (row,) = stage.rows(extra_runs)
    stage.provider.always("status", raises(Killed()))
    return Victim((DOUBLE_SUBMIT, f"{job_id}/{extra}"), lambda: stop_extra_run(stage.runtime, row["id"]))


def a_handler(stage: Stage, _monkeypatch: pytest.MonkeyPatch, *, transactional: bool = False) -> Victim:
    stage.runtime.handlers.add(Handler("deadly", ("job.created",), dies, None, transactional))
    tell(stage)
    relay.relay(stage.runtime)
    (run,) = stage.rows(handler_runs)

    def start() -> None:
        for run_id, token in claim_due_runs(stage.runtime):
            run_handler(stage.runtime, run_id, token)

    return Victim(("handler", str(run["id"])), start)


def a_transactional_handler(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Victim:
    return a_handler(stage, monkeypatch, transactional=True)


def a_delivery(stage: Stage, _monkeypatch: pytest.MonkeyPatch) -> Victim:
    world = World(stage.runtime, stage.broker, stage.clock)
    stage.runtime.fan_outs = (fan_out,)
    world.endpoint("http://127.0.0.1:1/a", "job.created")
    world.receives("http://127.0.0.1:1/a", dies)
    tell(stage)
    world.relay()
    (row,) = stage.rows(deliveries)

    def start() -> None:
        world.look()
        world.work()

    return Victim(("delivery", row["id"]), start)


def an_event_to_relay(stage: Stage, _monkeypatch: pytest.MonkeyPatch) -> Victim:
    """The bell dies first, uncounted; its message comes again, and says so."""
    event_id = tell(stage)
    stage.runtime.fan_outs = (deadly_fan_out(event_id),)
    came_before: list[bool] = []

    def start() -> None:
        came_before.append(True)
        relay.relay(stage.runtime, after_loss=len(came_before) > 1)

    return Victim(("event", event_id), start)


def an_event_the_sweep_relays(stage: Stage, _monkeypatch: pytest.MonkeyPatch) -> Victim:
    event_id = tell(stage)
    stage.runtime.fan_outs = (deadly_fan_out(event_id),)
    return Victim(("event", event_id), lambda: Outbox().run_once(stage.runtime, always))


def tell(stage: Stage) -> str:
    with stage.database.write() as tx:
        return append_event(tx, EventType.JOB_CREATED, tenant=TENANT, job_id="job_x", sequence=1, data={"job": {}})


def dies(*_arguments: object, **_named: object) -> Any:
    raise Killed


def deadly_fan_out(event_id: str) -> Callable[[Transaction, Sequence[Mapping[str, Any]]], list[tuple[str, ...]]]:
    def fan_out(_tx: Transaction, rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
        if any(row["id"] == event_id for row in rows):
            raise Killed
        return []

    return fan_out


KINDS = [
    a_submit,
    a_poll,
    a_cancel,
    a_file,
    an_extra_run,
    a_handler,
    a_transactional_handler,
    a_delivery,
    an_event_to_relay,
    an_event_the_sweep_relays,
]


@pytest.mark.parametrize("make", KINDS)
def test_what_kills_its_worker_is_a_dead_letter_after_three_starts(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, make: Callable[[Stage, pytest.MonkeyPatch], Victim]
) -> None:
    victim = make(stage, monkeypatch)
    deaths = []

    for _ in range(12):
        try:
            victim.start()
        except Killed:
            deaths.append(stage.clock.now())
        stage.clock.advance(STEP)

    assert len(deaths) == STARTS
    (letter,) = [row for row in stage.rows(dead_letters) if (row["kind"], row["ref"]) == victim.letter]
    assert "3 " in letter["reason"]
    assert letter["redriven_at"] is None


@pytest.mark.parametrize("make", [kind for kind in KINDS if kind is not an_event_to_relay])
def test_the_waits_between_the_starts_grow(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, make: Callable[[Stage, pytest.MonkeyPatch], Victim]
) -> None:
    victim = make(stage, monkeypatch)
    deaths = []
    end = stage.clock.now() + timedelta(minutes=5)

    while stage.clock.now() < end:
        try:
            victim.start()
        except Killed:
            deaths.append(stage.clock.now())
        stage.clock.advance(1 if len(deaths) < STARTS else 15)

    first, second = (later - earlier for earlier, later in pairwise(deaths))
    assert len(deaths) == STARTS
    assert timedelta(seconds=5) < first < second


def test_events_behind_one_that_kills_its_relay_go_out_meanwhile(stage: Stage) -> None:
    """F67 beside F58: nobody waits behind a suspect."""
    bad = tell(stage)
    good = [tell_more(stage, number) for number in range(10)]
    stage.runtime.fan_outs = (deadly_fan_out(bad),)
    with pytest.raises(Killed):
        relay.relay(stage.runtime)
    with pytest.raises(Killed):
        relay.relay(stage.runtime, after_loss=True)

    relay.relay(stage.runtime)

    placed = {row["id"]: row["position"] for row in stage.rows(outbox)}
    assert [placed[event] for event in good] == list(range(1, 11))
    assert placed[bad] is None


def test_an_event_that_survives_its_relay_alone_is_relayed_once(stage: Stage) -> None:
    """It may have been its batch that was too large, or a worker that was stopped for another reason."""
    events = [tell_more(stage, number) for number in range(5)]
    stage.runtime.fan_outs = (dies,)
    with pytest.raises(Killed):
        relay.relay(stage.runtime)
    stage.runtime.fan_outs = ()

    outcome = relay.relay(stage.runtime, after_loss=True)

    assert outcome.relayed == 5
    assert [row["position"] for row in stage.rows(outbox)] == [1, 2, 3, 4, 5]
    assert [row["id"] for row in stage.rows(outbox)] == events
    assert stage.letters() == []


def test_a_redriven_event_has_its_starts_anew(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    victim = an_event_the_sweep_relays(stage, monkeypatch)
    for _ in range(6):
        try:
            victim.start()
        except Killed:
            pass
        stage.clock.advance(STEP)
    stage.runtime.fan_outs = ()
    (letter,) = stage.letters("event")

    assert redrive(stage.runtime, Principal(TENANT, Role.OPERATOR, "key_1"), letter["id"]).why_not is None
    assert relay.relay(stage.runtime).relayed == 1


def tell_more(stage: Stage, number: int) -> str:
    with stage.database.write() as tx:
        return append_event(
            tx, EventType.JOB_CREATED, tenant=TENANT, job_id=f"job_{number}", sequence=1, data={"job": {}}
        )
