"""Runs that nobody waits for, and that still have to be stopped."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.broker import STOP_EXTRA_RUN
from jobs.services.extra_runs import claim_due
from jobs.services.runtime import Runtime
from jobs.storage.premise import Premise
from reconciler.counts import Counts
from reconciler.ringing import ring_each


@dataclass(frozen=True, slots=True)
class ExtraRuns:
    """Claims what is due and rings for it.

    Attributes:
        limit: Runs a pass.
    """

    limit: int = 50

    def run_once(self, runtime: Runtime, premise: Premise) -> Counts:
        """One pass."""
        claims = claim_due(runtime, self.limit, premise=premise)
        return ring_each(runtime, STOP_EXTRA_RUN, claims, limit=self.limit)
