"""The effect sink counts every call."""

from __future__ import annotations

import pytest

from tests.unit.homing.simulator.stage import Stage


def test_every_call_is_counted_by_job_event_and_type(stage: Stage) -> None:
    for event, job in (("evt_1", "job_a"), ("evt_1", "job_a"), ("evt_2", "job_b")):
        answer = stage.client.post("/sink", json={"event": event, "job": job, "type": "job.succeeded"})
        assert answer.status_code == 201

    assert stage.client.get("/sink").json == {
        "total": 3,
        "jobs": {"job_a": 2, "job_b": 1},
        "events": {"evt_1": 2, "evt_2": 1},
        "types": {"job.succeeded": 3},
    }


@pytest.mark.parametrize("body", [b"", b"[]", b'{"event": "e", "job": 1, "type": "t"}'])
def test_a_call_that_names_no_job_is_refused_and_not_counted(stage: Stage, body: bytes) -> None:
    assert stage.client.post("/sink", data=body).status_code == 422
    assert stage.client.get("/sink").json["total"] == 0
