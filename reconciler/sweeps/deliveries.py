"""Deliveries to endpoints that are due. ``webhooks`` is a stranger here: ``homing.composition`` hands its pass over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jobs.services.runtime import Runtime
from jobs.storage.premise import Premise
from reconciler.counts import Counts


@dataclass(frozen=True, slots=True)
class Deliveries:
    """Claims what may be sent, and rings for it.

    Attributes:
        look: One bounded pass; returns how many it took on. Its claims are leases, so it needs no premise.
    """

    look: Callable[[Runtime], int]

    def run_once(self, runtime: Runtime, premise: Premise) -> Counts:
        """One pass."""
        del premise
        claimed = self.look(runtime)
        return Counts(handled=claimed, more=claimed > 0)
