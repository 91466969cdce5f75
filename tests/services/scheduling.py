"""Which test process runs what, and when: what waits and what computes, side by side.

Tests of whole fleets mostly wait (for a lease to end, for a process to come back), the others keep a core busy. Two
lanes of processes, one for each kind, fill both cores; whoever is through with his own helps with the other.

Modules stay whole, since their fixtures may be fleets that take half a minute to start and stop. (xdist's own
``xdist_group`` does not do it: its 3.8 renames tests by an attribute that pytest 9.1 no longer reads.)
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

_LAST = "unit"


def longest_first(items: list[pytest.Item]) -> None:
    """The longest module started last would keep everybody waiting; a test's time-out tells how long it may be.

    Unit tests are the small change that evens out the end. What is equal stays in its random order.
    """
    patience: defaultdict[Path, float] = defaultdict(float)
    for item in items:
        if mark := item.get_closest_marker("timeout"):
            patience[item.path] = max(patience[item.path], mark.args[0])
    items.sort(key=lambda item: (-patience[item.path], _LAST in item.path.parts))


class TwoLanes(LoadFileScheduling):
    """Every second process takes the tests of ``tests/e2e`` first, the others take the rest first."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        if own := next((unit for unit in self.workqueue if _waits(unit) == _is_for_waiting(node)), None):
            self.workqueue.move_to_end(own, last=False)
        super()._assign_work_unit(node)

    def _reschedule(self, node: WorkerController) -> None:
        # A process needs its next test before it starts one. xdist hands out units a test earlier than that; two
        # tests of a fleet may take minutes, in which another process could have done the unit.
        if self.workqueue and self._pending_of(self.assigned_work[node]) > 1:
            return
        super()._reschedule(node)


def _waits(unit: str) -> bool:
    return unit.startswith("tests/e2e/")


def _is_for_waiting(node: WorkerController) -> bool:
    return int(node.gateway.id.removeprefix("gw")) % 2 == 0
