"""Reading the provider's ledger."""

from __future__ import annotations

from homing.demo.books import TRAFFIC
from homing.simulator.faults import Fault
from homing.simulator.ledger import Ledger
from jobs.clock import FakeClock


def test_every_total_of_the_ledger_is_traffic_or_a_fault() -> None:
    totals = Ledger(FakeClock()).snapshot()["totals"]

    assert isinstance(totals, dict)
    assert set(totals) - {fault.value for fault in Fault} - {"lost_answers"} == TRAFFIC
