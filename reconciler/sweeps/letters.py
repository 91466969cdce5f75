"""Whether dead letters come faster than they should."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.services.letters.growth import watch_growth
from jobs.services.runtime import Runtime
from jobs.storage.premise import Premise
from reconciler.counts import Counts


@dataclass(frozen=True, slots=True)
class Letters:
    """Looks at what came lately."""

    def run_once(self, runtime: Runtime, premise: Premise) -> Counts:
        """One pass."""
        return Counts(handled=int(watch_growth(runtime, premise=premise)))
