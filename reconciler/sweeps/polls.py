"""Jobs whose next status read is due."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.broker import POLL
from jobs.services.claims import claim_due
from jobs.services.runtime import Runtime
from jobs.storage.premise import Premise
from reconciler.counts import Counts
from reconciler.ringing import ring_each


@dataclass(frozen=True, slots=True)
class Polls:
    """Claims what is due and rings for it.

    Attributes:
        limit: Jobs a pass; SQLite's one writer is held no longer than about 10 ms.
    """

    limit: int = 200

    def run_once(self, runtime: Runtime, premise: Premise) -> Counts:
        """One pass."""
        claims = claim_due(runtime, "poll", self.limit, premise=premise)
        return ring_each(runtime, POLL, claims, limit=self.limit)
