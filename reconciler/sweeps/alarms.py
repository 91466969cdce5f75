"""Jobs whose expected time, review time or deadline has come."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.services.deadlines import ring_alarms
from jobs.services.runtime import Runtime
from jobs.storage.premise import Premise
from reconciler.counts import Counts


@dataclass(frozen=True, slots=True)
class Alarms:
    """Observes that a time has come.

    Attributes:
        limit: Jobs a pass.
    """

    limit: int = 200

    def run_once(self, runtime: Runtime, premise: Premise) -> Counts:
        """One pass."""
        rung = ring_alarms(runtime, self.limit, premise=premise)
        return Counts(handled=rung, more=rung == self.limit)
