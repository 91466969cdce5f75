"""Incoming events whose bell got lost. ``webhooks`` is a stranger here: ``homing.composition`` hands its pass over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jobs.services.runtime import Runtime
from jobs.storage.premise import Premise
from reconciler.counts import Counts


@dataclass(frozen=True, slots=True)
class Inbox:
    """Applies what waits.

    Attributes:
        apply: One bounded batch; returns how many rows it took on, 0 when none waits. Its claims are leases, so it
            needs no premise: a second applier finds the rows taken.
    """

    apply: Callable[[Runtime], int]

    def run_once(self, runtime: Runtime, premise: Premise) -> Counts:
        """One pass."""
        del premise
        applied = self.apply(runtime)
        return Counts(handled=applied, more=applied > 0)
