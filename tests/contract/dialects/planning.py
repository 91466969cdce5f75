"""Faults chosen by hand, whatever is asked for."""

from __future__ import annotations

from homing.simulator.faults import Faults
from homing.simulator.plan import FaultPlan, Slot


class EveryRun(FaultPlan):
    """The same faults for every run."""

    def __init__(self, faults: Faults) -> None:
        super().__init__(0, "none")
        self._faults = faults

    def faults_for(self, slot: Slot) -> Faults:
        return self._faults
