"""Looks at the fleet while it works: how many jobs stand where, and what brought them home."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import requests

from homing.demo.books import TRAFFIC
from homing.demo.stage import Stage
from jobs.clock import Clock
from jobs.core.errors import Unavailable
from jobs.core.states import OPEN, TERMINAL
from jobs.storage import tallies
from jobs.storage.database import Database

#: The ledger of hundreds of jobs is long; the live table can wait a little for it.
_LEDGER_EVERY_S = 2.0


@dataclass(frozen=True, slots=True)
class Sight:
    """One look.

    Attributes:
        wanted: jobs to come home.
        elapsed_s: since the first submit.
        states: jobs by state.
        home_by: jobs that have ended, by what brought the news.
        waiting: jobs that wait for a person.
        effects: jobs that had theirs; where a process died, a call may have been made twice.
        faults: what the provider has done wrong so far, by kind.
    """

    wanted: int
    elapsed_s: float
    states: Counter[str] = field(default_factory=Counter)
    home_by: Counter[str] = field(default_factory=Counter)
    waiting: int = 0
    effects: int = 0
    faults: dict[str, int] = field(default_factory=dict)

    @property
    def home(self) -> int:
        """Jobs that have ended."""
        return sum(self.states[state] for state in TERMINAL)

    @property
    def is_over(self) -> bool:
        """Whether every job is home and has had an effect."""
        return self.home >= self.wanted and self.effects >= self.wanted


class Lookout:
    """Takes looks at one run.

    Args:
        stage: what to look at.
        wanted: jobs to come home.
        clock: measures the time since now.
    """

    def __init__(self, stage: Stage, *, wanted: int, clock: Clock) -> None:
        """See the class."""
        self._stage = stage
        self._wanted = wanted
        self._clock = clock
        self._began_s = clock.monotonic()
        self._ledger: dict[str, Any] = {}
        self._ledger_at_s = -_LEDGER_EVERY_S
        self._last = Sight(wanted, 0.0)

    @property
    def elapsed_s(self) -> float:
        """Seconds since it was built."""
        return self._clock.monotonic() - self._began_s

    def look(self) -> Sight:
        """Look now; where something does not answer, the last sight is still the best one."""
        try:
            states, home_by, waiting = count_jobs(self._stage.database)
            effects = len(self._stage.simulator.sink()["jobs"])
            faults = self._faults()
        except (Unavailable, requests.RequestException, ValueError):
            return self._last
        self._last = Sight(self._wanted, self.elapsed_s, states, home_by, waiting, effects, faults)
        return self._last

    def _faults(self) -> dict[str, int]:
        if self.elapsed_s - self._ledger_at_s >= _LEDGER_EVERY_S:
            self._ledger = self._stage.simulator.ledger()
            self._ledger_at_s = self.elapsed_s
        return faults_seen(self._ledger)


def count_jobs(database: Database) -> tuple[Counter[str], Counter[str], int]:
    """Count jobs by state, ended jobs by what brought them home, and jobs that wait for a person."""
    with database.read() as tx:
        states = Counter(tallies.totals(tallies.count_jobs(tx), "state"))
        ended = tallies.homecomings(tallies.count_transitions(tx))
        waiting = sum(row["count"] for row in tallies.count_reviews(tx, among=OPEN))
    return states, Counter(tallies.totals(ended, "source")), waiting


def faults_seen(ledger: dict[str, Any]) -> dict[str, int]:
    """Return how often each kind of fault struck, most frequent first."""
    struck = {kind: count for kind, count in ledger.get("totals", {}).items() if count and kind not in TRAFFIC}
    return dict(sorted(struck.items(), key=lambda item: (-item[1], item[0])))
