"""Streams that nobody reads: new ones, those whose reader died, and those that rested after a failure."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.broker import READ_OUTPUT
from jobs.services.output.streams import claim_due
from jobs.services.runtime import Runtime
from jobs.storage.premise import Premise
from reconciler.counts import Counts
from reconciler.ringing import ring_each


@dataclass(frozen=True, slots=True)
class Streams:
    """Claims what is due and rings for it.

    Attributes:
        limit: Streams that may wait for a reader at once.
    """

    limit: int = 50

    def run_once(self, runtime: Runtime, premise: Premise) -> Counts:
        """One pass."""
        claims = claim_due(runtime, self.limit, premise=premise)
        return ring_each(runtime, READ_OUTPUT, claims, limit=self.limit)
