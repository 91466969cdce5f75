"""How a run ends: by its model's work, by its own failure, never left at work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from homing.simulator import life, read_job_lines
from homing.simulator.life import work
from homing.simulator.run import Order, Outcome, Run, Status
from jobs.clock import FakeClock
from tests.unit.homing.simulator.stage import QUICK, Stage

EXAMPLES = Path(__file__).parents[4] / "examples" / "jobs.jsonl"


def work_on(given: dict[str, Any]) -> Outcome:
    order = Order(model=given["model"], input={name: value for name, value in given.items() if name != "model"})
    return work(Run("p-1", order, FakeClock().now(), 1.0), price=0.02)


@pytest.mark.parametrize(("fail", "message"), [(True, "the input asked"), ("moderated", "moderated")])
def test_an_input_can_ask_for_failure(stage: Stage, fail: object, message: str) -> None:
    facts = stage.run_to_end({**QUICK, "fail": fail})

    assert (facts["status"], facts["error"]["code"]) == ("failed", "generation_failed")
    assert message in facts["error"]["message"]
    assert (facts["output"], facts["artifacts"], facts["cost"]) == (None, [], 0)


@pytest.mark.parametrize("duration_s", ["soon", -1, 1e9, True, None])
def test_a_bad_duration_fails_the_run(stage: Stage, duration_s: object) -> None:
    facts = stage.run_to_end({**QUICK, "duration_s": duration_s})

    assert (facts["status"], facts["error"]["code"]) == ("failed", "invalid_input")
    assert "duration_s" in facts["error"]["message"]


def test_a_model_that_breaks_fails_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> None:
        raise RuntimeError("defect")

    monkeypatch.setattr(life, "MODELS", {"video": broken})

    outcome = work_on({"model": "video"})

    assert outcome.status is Status.FAILED
    assert outcome.error == {"code": "internal", "message": "the model broke on this input"}


def test_the_longer_a_run_works_the_more_it_costs(stage: Stage) -> None:
    assert stage.run_to_end({**QUICK, "duration_s": 0})["cost"] == pytest.approx(0.01)
    assert stage.run_to_end({**QUICK, "duration_s": 1.5})["cost"] == pytest.approx(0.013)


def test_the_examples_succeed_except_the_two_that_are_meant_to_fail() -> None:
    outcomes = [work_on(line.input) for line in read_job_lines(EXAMPLES)]

    codes = [outcome.error["code"] for outcome in outcomes if outcome.error is not None]

    assert sorted(codes) == ["generation_failed", "invalid_input"]
    assert all(outcome.files for outcome in outcomes if outcome.error is None)
