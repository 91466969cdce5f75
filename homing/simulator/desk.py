"""Where submits arrive: keys, the faults of each, and at most one run per key."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum, auto

from homing.simulator.config import SimulatorConfig
from homing.simulator.faults import Fault, Faults
from homing.simulator.ledger import Ledger
from homing.simulator.life import read_duration_s
from homing.simulator.plan import FaultPlan, Slot, canonical_json
from homing.simulator.run import Order, Run
from homing.simulator.run_book import RunBook


class Verdict(Enum):
    """What becomes of a submit."""

    ACCEPTED = auto()
    REPLAYED = auto()
    KEY_REUSED = auto()
    REFUSED = auto()
    """By a fault, before anything was accepted."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict with its run and the fault that strikes this very request."""

    verdict: Verdict
    run: Run | None = None
    fault: Fault | None = None


@dataclass(slots=True)
class _Client:
    """What is known of one client's job, told apart by its key or reference."""

    slot: Slot
    refusals: int = 0
    runs: int = field(default=0)


class Desk:
    """Decides submits, one at a time."""

    def __init__(self, config: SimulatorConfig, *, plan: FaultPlan, runs: RunBook, ledger: Ledger) -> None:
        """See the class."""
        self._config = config
        self._plan = plan
        self._runs = runs
        self._ledger = ledger
        self._lock = threading.Lock()
        self._clients: dict[str, _Client] = {}
        self._ordinals: Counter[str] = Counter()

    def submit(self, order: Order) -> Decision:
        """Accept a submit, or say why not."""
        with self._lock:
            known = self._find_known(order)
            if known is not None:
                reject = self._config.idempotency == "reject"
                return Decision(Verdict.KEY_REUSED if reject else Verdict.REPLAYED, known)
            client = self._client(order)
            faults = self._plan.faults_for(client.slot)
            if _is_refused(faults, client):
                client.refusals += 1
                return Decision(Verdict.REFUSED, fault=faults.submit)
            return self._accept(order, client, faults=faults)

    def _find_known(self, order: Order) -> Run | None:
        if self._config.idempotency == "none" or order.key is None:
            return None
        return self._runs.find_by_key(order.key, window=self._config.idempotency_window)

    def _client(self, order: Order) -> _Client:
        """A repeated request keeps the ordinal of its first, so that its faults stay its own."""
        name = f"key {order.key}" if order.key is not None else f"reference {order.reference}"
        client = self._clients.get(name)
        if client is None or (order.key is None and order.reference is None):
            text = canonical_json({**order.input, "model": order.model})
            client = _Client((text, self._ordinals[text]))
            self._ordinals[text] += 1
            self._clients[name] = client
        return client

    def _accept(self, order: Order, client: _Client, *, faults: Faults) -> Decision:
        duration_s = read_duration_s(order.input) * self._config.time_scale
        run = self._runs.open(order, faults=faults, duration_s=duration_s)
        self._ledger.record_run()
        client.runs += 1
        lost = faults.submit is Fault.LOST_ANSWER and client.runs == 1
        return Decision(Verdict.ACCEPTED, run, Fault.LOST_ANSWER if lost else None)


def _is_refused(faults: Faults, client: _Client) -> bool:
    return faults.submit in (Fault.SUBMIT_503, Fault.SUBMIT_429) and client.refusals < faults.times
