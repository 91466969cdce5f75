"""Events whose bell got lost, and those that could not be relayed before."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.services.relay import BATCH, relay_counted
from jobs.services.runtime import Runtime
from jobs.storage.premise import Premise
from reconciler.counts import Counts


@dataclass(frozen=True, slots=True)
class Outbox:
    """Relays.

    Attributes:
        limit: Events a pass.
    """

    limit: int = BATCH

    def run_once(self, runtime: Runtime, premise: Premise) -> Counts:
        """One pass."""
        batch = relay_counted(runtime, limit=self.limit, premise=premise)
        # Where nothing but failures is left, a further pass would use their tries up within a moment.
        more = batch.more and batch.relayed > 0
        return Counts(handled=batch.relayed, rung=batch.rung, failed=len(batch.failed), more=more)
