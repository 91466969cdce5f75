"""Python handlers that are due: tries again, and first tries whose bell got lost."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.services.handling import claim_due_runs
from jobs.services.relay import BATCH
from jobs.services.relay_batches import ring
from jobs.services.runtime import Runtime
from jobs.storage.premise import Premise
from reconciler.counts import Counts


@dataclass(frozen=True, slots=True)
class Handlers:
    """Claims due runs and rings for them.

    Attributes:
        limit: Runs a pass.
    """

    limit: int = BATCH

    def run_once(self, runtime: Runtime, premise: Premise) -> Counts:
        """One pass."""
        claims = claim_due_runs(runtime, self.limit, premise=premise)
        return Counts(handled=len(claims), rung=ring(runtime, claims), more=len(claims) == self.limit)
