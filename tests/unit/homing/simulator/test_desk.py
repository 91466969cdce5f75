"""Submits: keys in their three modes, refusals, and what is billed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest

from homing.simulator.faults import Fault, Faults
from homing.simulator.run import Run
from tests.unit.homing.simulator.stage import QUICK, Stage, planned

Build = Callable[..., Stage]


def test_a_submit_is_accepted_and_billed(stage: Stage) -> None:
    answer = stage.submit(key="k-1", reference="r-1")

    assert answer.status_code == 201
    assert answer.json["status"] == "queued"
    assert answer.json["id"].startswith("p-")
    assert stage.ledger["runs_billed"] == 1
    assert stage.ledger["submits"] == [
        {
            "key": "k-1",
            "reference": "r-1",
            "id": answer.json["id"],
            "answer": 201,
            "fault": None,
            "at": "2026-01-01T00:00:00Z",
        }
    ]


def test_a_repeated_key_is_answered_with_the_same_job_and_billed_once(stage: Stage) -> None:
    first = stage.submit(key="k-1")
    stage.pass_time(2)

    again = stage.submit(key="k-1")

    assert (again.status_code, again.json["id"]) == (200, first.json["id"])
    assert again.json["status"] == "succeeded"
    assert stage.ledger["runs_billed"] == 1


def test_a_repeated_key_is_refused_where_the_account_says_so(build_stage: Build) -> None:
    stage = build_stage(idempotency="reject")
    stage.submit(key="k-1")

    again = stage.submit(key="k-1")

    assert (again.status_code, again.json["error"]["code"]) == (422, "idempotency_key_reused")
    assert stage.ledger["runs_billed"] == 1


def test_keys_mean_nothing_where_the_account_knows_none(build_stage: Build) -> None:
    stage = build_stage(idempotency="none")
    first = stage.submit(key="k-1")

    again = stage.submit(key="k-1")

    assert again.status_code == 201
    assert again.json["id"] != first.json["id"]
    assert stage.ledger["runs_billed"] == 2


def test_submits_without_a_key_are_all_new(stage: Stage) -> None:
    assert stage.submit().json["id"] != stage.submit().json["id"]


def test_a_key_is_forgotten_one_window_after_its_first_send(build_stage: Build) -> None:
    stage = build_stage(idempotency_window=timedelta(seconds=60))
    first = stage.submit(key="k-1").json["id"]
    stage.clock.advance(59)
    assert stage.submit(key="k-1").json["id"] == first

    stage.clock.advance(1)

    assert stage.submit(key="k-1").status_code == 201


def test_two_submits_of_one_key_at_once_begin_one_run(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    meeting, find = Barrier(2), stage.provider.runs.find_by_key

    def find_together(key: str, *, window: timedelta) -> Run | None:
        found = find(key, window=window)
        with contextlib.suppress(BrokenBarrierError):
            meeting.wait(0.1)  # both are here at once only where nothing keeps them apart
        return found

    monkeypatch.setattr(stage.provider.runs, "find_by_key", find_together)
    app = stage.client.application

    def submit(_: int) -> str:
        own = Stage(stage.provider, app.test_client(), stage.clock, None)
        return str(own.submit(key="k-1").json["id"])

    with ThreadPoolExecutor(2) as pool:
        ids = set(pool.map(submit, range(2)))

    assert len(ids) == 1
    assert stage.ledger["runs_billed"] == 1


@pytest.mark.parametrize(
    "body",
    [
        b"not json",
        b"[]",
        b'{"model": "video"}',
        b'{"model": "telepathy", "input": {}}',
        b'{"model": ["video"], "input": {}}',
        b'{"model": "video", "input": {}, "reference": 7}',
        b'{"model": "video", "input": {}, "callback_url": "file:///etc/passwd"}',
        b'{"model": "video", "input": {}, "callback_url": "http://[bad"}',
    ],
)
def test_a_submit_that_makes_no_sense_is_refused_and_not_billed(stage: Stage, body: bytes) -> None:
    answer = stage.client.post("/jobs", data=body)

    assert (answer.status_code, answer.json["error"]["code"]) == (422, "invalid_request")
    assert stage.ledger["runs_billed"] == 0


@pytest.mark.parametrize(("fault", "status"), [(Fault.SUBMIT_503, 503), (Fault.SUBMIT_429, 429)])
def test_a_refused_submit_bills_nothing_and_the_next_try_is_accepted(
    build_stage: Build, fault: Fault, status: int
) -> None:
    stage = build_stage(fault_plan=planned(Faults(submit=fault, times=2)))

    answers = [stage.submit(key="k-1") for _ in range(3)]

    assert [answer.status_code for answer in answers] == [status, status, 201]
    assert answers[0].headers.get("Retry-After") == ("1" if status == 429 else None)
    assert [entry["fault"] for entry in stage.ledger["submits"]] == [fault.value, fault.value, None]
    assert [entry["id"] for entry in stage.ledger["submits"]][:2] == [None, None]
    assert stage.ledger["runs_billed"] == 1


def test_a_lost_answer_leaves_a_run_that_the_same_key_finds(build_stage: Build) -> None:
    stage = build_stage(fault_plan=planned(Faults(submit=Fault.LOST_ANSWER)))

    with pytest.raises(ConnectionAbortedError):
        stage.submit(key="k-1", reference="r-1")
    again = stage.submit(key="k-1", reference="r-1")

    first = stage.ledger["submits"][0]
    assert (first["answer"], first["fault"], first["id"]) == (None, "lost_answer", again.json["id"])
    assert again.status_code == 200
    assert stage.ledger["runs_billed"] == 1
    assert stage.ledger["totals"]["lost_answers"] == 1


def test_the_faults_of_equal_inputs_follow_their_keys_whatever_the_order_of_requests(
    build_stage: Build,
) -> None:
    plan = planned(Faults(submit=Fault.SUBMIT_503))  # for the first of two equal inputs
    stage = build_stage(fault_plan=plan)

    answers = [stage.submit(key=key).status_code for key in ("k-1", "k-2", "k-1", "k-2")]

    assert answers == [503, 201, 201, 200]


def test_the_wire_form_of_a_planned_input_is_recognised(build_stage: Build) -> None:
    given: dict[str, Any] = {**QUICK, "duration_s": 2.0}
    stage = build_stage(fault_plan=planned(Faults(submit=Fault.SUBMIT_503), {**QUICK, "duration_s": 2}))

    assert stage.submit(given, key="k-1").status_code == 503


def test_calls_need_the_token_where_there_is_one(build_stage: Build) -> None:
    stage = build_stage(api_token="letmein")
    post, get = stage.client.post, stage.client.get

    refused = [
        stage.submit().status_code,
        get("/jobs/p-1", headers={"Authorization": "Bearer wrong"}).status_code,
        get("/jobs?reference=r", headers={"Authorization": "Bearer \xe9"}).status_code,
        post("/jobs/p-1/cancel").status_code,
    ]

    assert refused == [401, 401, 401, 401]
    assert get("/jobs/p-1", headers={"Authorization": "Bearer letmein"}).status_code == 404


@pytest.mark.parametrize("profile", ["default", "brutal"])
def test_one_seed_gives_one_client_the_same_faults_in_whatever_order_all_submit(
    build_stage: Build, profile: str
) -> None:
    inputs: list[dict[str, Any]] = [{**QUICK, "prompt": f"letter {n}"} for n in range(40)]

    def play(order: list[int]) -> dict[str, Any]:
        stage = build_stage(seed=7, faults=profile, plan=tuple(inputs), listen=False)
        stage.client.application.testing = False  # a lost answer is a 500 here, and the next try finds the run
        for number in order:
            for _ in range(4):
                stage.submit(inputs[number], key=f"k-{number}")
                stage.pass_time(0.1 * number)
        return {run["key"]: run["faults"] for run in stage.ledger["runs"]}

    forward, backward = play(list(range(40))), play(list(range(39, -1, -1)))

    assert forward == backward
    assert len(forward) == 40
