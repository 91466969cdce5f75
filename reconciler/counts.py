"""What one pass of a sweep did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from jobs.services.runtime import Runtime
from jobs.storage.premise import Premise


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of one pass, or of several added up.

    Attributes:
        handled: Rows taken on.
        rung: Bells for them that reached the broker.
        failed: Rows that could not be handled.
        more: Whether the pass ended at its limit, so that another one is worth while.
    """

    handled: int = 0
    rung: int = 0
    failed: int = 0
    more: bool = False

    def __add__(self, later: Counts) -> Counts:
        """The sum; whether there is more is the later one's word."""
        return Counts(self.handled + later.handled, self.rung + later.rung, self.failed + later.failed, later.more)

    def __bool__(self) -> bool:
        """Whether anything happened that a log should say."""
        return bool(self.handled or self.rung or self.failed)


class Sweep(Protocol):
    """One bounded pass over what is due; called again while it says that there is more."""

    def run_once(self, runtime: Runtime, premise: Premise) -> Counts:
        """One pass.

        Args:
            runtime: The process's parts.
            premise: Checked by every transaction of the pass; raises ``Stale`` once another sweeper has taken over.
        """
        ...
