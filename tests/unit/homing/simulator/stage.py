"""A receiver that keeps what it gets, and a simulator whose time moves only when a test says so."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from typing import Any

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from homing.simulator import FaultPlan
from homing.simulator.faults import Faults
from homing.simulator.plan import canonical_json
from homing.simulator.provider import Provider
from jobs.clock import FakeClock

QUICK: dict[str, Any] = {"model": "llm-stream", "prompt": "home", "max_tokens": 5, "duration_s": 1}


def planned(faults: Faults, given: dict[str, Any] = QUICK, *, runs: int = 1) -> FaultPlan:
    """Build a plan that deals these faults to the first runs of one input."""
    return FaultPlan(0, "none", {(canonical_json(given), ordinal): faults for ordinal in range(runs)})


@dataclass
class Received:
    """One webhook as it arrived."""

    headers: dict[str, str]
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        return dict(json.loads(self.body))


@dataclass
class Receiver:
    """Answers by script (then 200), and lets tests wait for what arrives."""

    url: str = ""
    answers: list[int] = field(default_factory=list)
    received: list[Received] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def take(self, received: Received) -> int:
        with self.changed:
            self.received.append(received)
            self.changed.notify_all()
            return self.answers.pop(0) if self.answers else 200

    def wait_for(self, count: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.received) >= count, timeout=5)

    @property
    def statuses(self) -> list[str]:
        return [item.event["status"] for item in self.received]


@dataclass
class Stage:
    """A simulator on a fake clock: everything happens in the test's own thread, within `pass_time`."""

    provider: Provider
    client: FlaskClient
    clock: FakeClock
    callback_url: str | None

    def pass_time(self, seconds: float) -> None:
        for _ in range(round(seconds / 0.1)):
            self.clock.advance(0.1)
            self.provider.scheduler.run_due()

    def submit(
        self, given: dict[str, Any] = QUICK, *, key: str | None = None, reference: str | None = None
    ) -> TestResponse:
        rest = {name: value for name, value in given.items() if name != "model"}
        body = {
            "model": given.get("model"),
            "input": rest,
            "callback_url": self.callback_url,
            "reference": reference,
        }
        headers = {} if key is None else {"Idempotency-Key": key}
        return self.client.post("/jobs", json=body, headers=headers)

    def run_to_end(self, given: dict[str, Any] = QUICK) -> dict[str, Any]:
        """Submit, let it finish and read it."""
        run_id = self.submit(given).json["id"]
        self.pass_time(2)
        return dict(self.read(run_id).json)

    def read(self, run_id: str) -> TestResponse:
        return self.client.get(f"/jobs/{run_id}")

    @property
    def ledger(self) -> dict[str, Any]:
        return dict(self.client.get("/ledger").json)
