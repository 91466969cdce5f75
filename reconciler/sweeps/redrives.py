"""Redrives of many dead letters, moved on as far as their rates allow."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.services.letters.redriving import BATCH, advance
from jobs.services.runtime import Runtime
from jobs.storage.premise import Premise
from reconciler.counts import Counts


@dataclass(frozen=True, slots=True)
class Redrives:
    """Redrives the next letters.

    Attributes:
        limit: Letters a pass.
    """

    limit: int = BATCH

    def run_once(self, runtime: Runtime, premise: Premise) -> Counts:
        """One pass."""
        handled = advance(runtime, self.limit, premise=premise)
        return Counts(handled=handled, more=handled == self.limit)
