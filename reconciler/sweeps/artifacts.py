"""Result files that are due: fetched within seconds of the success, and again where a try failed."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.broker import FETCH_ARTIFACT
from jobs.services.artifacts.fetching import claim_due
from jobs.services.runtime import Runtime
from jobs.storage.premise import Premise
from reconciler.counts import Counts
from reconciler.ringing import ring_each


@dataclass(frozen=True, slots=True)
class Artifacts:
    """Claims what is due and rings for it.

    Attributes:
        limit: Files a pass.
    """

    limit: int = 50

    def run_once(self, runtime: Runtime, premise: Premise) -> Counts:
        """One pass."""
        claims = claim_due(runtime, self.limit, premise=premise)
        return ring_each(runtime, FETCH_ARTIFACT, claims, limit=self.limit)
