"""Reads, searches and cancels, with the trouble a read may have."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from homing.simulator.faults import Fault, Faults
from tests.unit.homing.simulator.stage import QUICK, Stage, planned

Build = Callable[..., Stage]


def test_a_run_goes_from_queued_over_processing_to_its_end(stage: Stage) -> None:
    run_id = stage.submit({**QUICK, "duration_s": 2}).json["id"]
    seen = [stage.read(run_id).json]
    for seconds in (0.2, 1, 2):
        stage.pass_time(seconds)
        seen.append(stage.read(run_id).json)

    assert [facts["status"] for facts in seen] == ["queued", "processing", "processing", "succeeded"]
    assert [facts["progress"] for facts in seen] == [0.0, pytest.approx(0.05), pytest.approx(0.55), 1.0]
    assert seen[0]["cost"] is None
    assert seen[3]["cost"] == pytest.approx(0.014)
    assert seen[3]["output"]["tokens"] == 5
    assert set(seen[3]) == {"id", "status", "progress", "output", "error", "artifacts", "cost"}


def test_a_run_is_found_by_its_reference_and_by_its_key(stage: Stage) -> None:
    run_id = stage.submit(key="k-1", reference="r-1").json["id"]

    by_reference = stage.client.get("/jobs?reference=r-1").json
    by_key = stage.client.get("/jobs?idempotency_key=k-1").json
    nothing = stage.client.get("/jobs?reference=r-2").json

    assert [job["id"] for job in by_reference["jobs"]] == [run_id]
    assert [job["id"] for job in by_key["jobs"]] == [run_id]
    assert nothing == {"jobs": []}
    assert [(read["kind"], read["found"]) for read in stage.ledger["reads"]] == [
        ("search", 1), ("search", 1), ("search", 0),
    ]  # fmt: skip


def test_a_search_needs_something_to_search_for(stage: Stage) -> None:
    assert stage.client.get("/jobs").status_code == 422


def test_the_search_can_be_switched_off(build_stage: Build) -> None:
    stage = build_stage(search=False)

    assert stage.client.get("/jobs?reference=r-1").status_code == 501


def test_the_search_can_lag(build_stage: Build) -> None:
    stage = build_stage(search_lag=timedelta(seconds=5))
    stage.submit(reference="r-1")
    assert stage.client.get("/jobs?reference=r-1").json == {"jobs": []}

    stage.clock.advance(5)

    assert len(stage.client.get("/jobs?reference=r-1").json["jobs"]) == 1


def test_a_running_job_is_canceled_and_stays_so(stage: Stage) -> None:
    run_id = stage.submit().json["id"]
    stage.pass_time(0.3)

    answer = stage.client.post(f"/jobs/{run_id}/cancel")
    stage.pass_time(3)

    assert (answer.status_code, answer.json["status"]) == (200, "canceled")
    assert stage.read(run_id).json["status"] == "canceled"


def test_a_cancel_may_be_taken_and_ignored(build_stage: Callable[..., Stage]) -> None:
    stage = build_stage(fault_plan=planned(Faults(cancel=Fault.CANCEL_IGNORED)))
    run_id = stage.submit().json["id"]

    answer = stage.client.post(f"/jobs/{run_id}/cancel")
    stage.pass_time(2)

    assert answer.status_code == 200
    assert stage.read(run_id).json["status"] == "succeeded"


def test_a_queued_job_is_canceled_and_never_begins(stage: Stage) -> None:
    run_id = stage.submit().json["id"]

    stage.client.post(f"/jobs/{run_id}/cancel")
    stage.pass_time(3)

    assert stage.read(run_id).json["status"] == "canceled"
    assert stage.read(run_id).json["cost"] == 0


@pytest.mark.parametrize("given", [QUICK, {**QUICK, "fail": True}])
def test_a_finished_job_cannot_be_canceled(stage: Stage, given: dict[str, Any]) -> None:
    facts = stage.run_to_end(given)

    answer = stage.client.post(f"/jobs/{facts['id']}/cancel")

    assert (answer.status_code, answer.json["error"]["code"]) == (409, "job_finished")
    assert answer.json["job"]["status"] == facts["status"]
    assert stage.read(facts["id"]).json["status"] == facts["status"]


def test_a_job_is_canceled_once(stage: Stage) -> None:
    run_id = stage.submit().json["id"]

    answers = [stage.client.post(f"/jobs/{run_id}/cancel").status_code for _ in range(2)]

    assert answers == [200, 409]
    assert [entry["answer"] for entry in stage.ledger["cancels"]] == [200, 409]


def test_an_unknown_job_is_404_and_noted(stage: Stage) -> None:
    assert stage.read("p-nobody").status_code == 404
    assert stage.client.post("/jobs/p-nobody/cancel").status_code == 404
    assert (stage.ledger["reads"][0]["id"], stage.ledger["reads"][0]["answer"]) == ("p-nobody", 404)


@pytest.mark.parametrize(
    ("fault", "jitter", "status"),
    [
        (Fault.STATUS_5XX, 0.0, 500),
        (Fault.STATUS_5XX, 0.5, 502),
        (Fault.STATUS_5XX, 0.99, 503),
        (Fault.STATUS_429, 0.5, 429),
        (Fault.STATUS_HTML, 0.5, 200),
        (Fault.STATUS_UNKNOWN, 0.5, 200),
    ],
)
def test_only_the_first_reads_are_in_trouble(build_stage: Build, fault: Fault, jitter: float, status: int) -> None:
    stage = build_stage(fault_plan=planned(Faults(status=fault, times=2, jitter=jitter)))
    run_id = stage.submit().json["id"]

    answers = [stage.read(run_id) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [status, status, 200]
    assert answers[2].json["status"] == "queued"
    assert [read["fault"] for read in stage.ledger["reads"]] == [fault.value, fault.value, None]
    assert stage.ledger["totals"][fault.value] == 2


def test_a_busy_status_read_says_when_to_come_back(build_stage: Build) -> None:
    stage = build_stage(fault_plan=planned(Faults(status=Fault.STATUS_429)))

    assert stage.read(stage.submit().json["id"]).headers["Retry-After"] == "1"


def test_a_gateway_page_is_no_json_under_status_200(build_stage: Build) -> None:
    """F25, F26: what a proxy says in the provider's place."""
    stage = build_stage(fault_plan=planned(Faults(status=Fault.STATUS_HTML)))

    answer = stage.read(stage.submit().json["id"])

    assert answer.status_code == 200
    assert answer.mimetype == "text/html"
    assert b"502 Bad Gateway" in answer.data


def test_an_unknown_word_stands_in_an_otherwise_good_answer(build_stage: Build) -> None:
    """F24: neither success nor failure."""
    stage = build_stage(fault_plan=planned(Faults(status=Fault.STATUS_UNKNOWN, jitter=0.5)))

    run_id = stage.submit().json["id"]

    assert (stage.read(run_id).json["status"], stage.read(run_id).json["id"]) == ("aborted", run_id)
