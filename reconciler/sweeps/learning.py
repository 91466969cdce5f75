"""What the jobs that have ended teach about their providers."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.services.learning import learn
from jobs.services.runtime import Runtime
from jobs.storage.premise import Premise
from reconciler.counts import Counts


@dataclass(frozen=True, slots=True)
class Learning:
    """Reads the history from where it left off.

    Attributes:
        limit: Rows a pass; SQLite's one writer is held no longer than about 10 ms.
    """

    limit: int = 500

    def run_once(self, runtime: Runtime, premise: Premise) -> Counts:
        """One pass."""
        read = learn(runtime, self.limit, premise=premise)
        return Counts(handled=read, more=read == self.limit)
