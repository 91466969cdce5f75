"""The ledger: everything counted, the newest kept."""

from __future__ import annotations

import pytest

from homing.simulator import ledger as ledger_module
from homing.simulator.faults import Fault
from homing.simulator.ledger import Ledger
from jobs.clock import FakeClock


def test_an_empty_ledger_shows_its_totals_at_zero() -> None:
    shown = Ledger(FakeClock()).snapshot()

    assert shown["runs_billed"] == 0
    totals = shown["totals"]
    assert isinstance(totals, dict)
    assert set(totals.values()) == {0}
    assert {"sent", "dropped", "duplicated", "reordered", "delayed", "early", "badly_signed", "stale", "refused",
            "lost_answers"} <= set(totals)  # fmt: skip


def test_an_event_is_counted_once_however_often_it_is_tried() -> None:
    ledger = Ledger(FakeClock())
    ledger.record_event(Fault.BADLY_SIGNED)
    for attempt in range(1, 7):
        ledger.record_webhook(
            event_id="evt_1", run_id="p-1", status="succeeded", attempt=attempt, fault=Fault.BADLY_SIGNED, answer=403
        )

    totals = ledger.snapshot()["totals"]

    assert isinstance(totals, dict)
    assert (totals["events"], totals["badly_signed"], totals["sent"], totals["refused"]) == (1, 1, 6, 6)


@pytest.mark.parametrize(("answer", "refused"), [(200, 0), (403, 1), (503, 0), ("ConnectionError", 0)])
def test_only_a_4xx_is_a_refusal(answer: int | str, refused: int) -> None:
    ledger = Ledger(FakeClock())

    ledger.record_webhook(event_id="e", run_id="p", status="failed", attempt=1, fault=None, answer=answer)

    totals = ledger.snapshot()["totals"]
    assert isinstance(totals, dict)
    assert (totals["sent"], totals["refused"]) == (1, refused)


def test_details_are_bounded_and_totals_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "_KEPT", 3)
    ledger = Ledger(FakeClock())
    for number in range(5):
        ledger.record_read(run_id=f"p-{number}", answer=200)

    shown = ledger.snapshot()

    reads, totals = shown["reads"], shown["totals"]
    assert isinstance(reads, list)
    assert isinstance(totals, dict)
    assert ([read["id"] for read in reads], totals["reads"]) == (["p-2", "p-3", "p-4"], 5)
