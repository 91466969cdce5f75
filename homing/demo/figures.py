"""What the run cost and how fast it healed: figures that are shown, not judged. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from homing.demo.books import LOST, TRAFFIC, Ending, beginnings, endings, runs_by_fault
from homing.demo.evidence import Evidence
from jobs.core.plan import plan_interval
from jobs.core.states import TERMINAL

#: The polling everybody writes first.
FIXED_POLLING = timedelta(seconds=10)
_SHORTEST = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Figures:
    """The numbers.

    Attributes:
        webhooks: runs by the trouble of their webhooks, and deliveries sent and refused.
        other_faults: troubles of submits and reads, by kind.
        home_by: jobs by what brought the news of their end.
        received: events in the inbox, by what became of them.
        polls: status reads made.
        fixed_polls: status reads a fixed interval (`FIXED_POLLING`) would have made.
        lost: jobs whose news was lost, and had to be fetched.
        heal_median_s: from the end of such a run to our knowing.
        heal_worst_s: the longest such time.
        news_median_s: the same for every job.
        news_worst_s: the longest for any job.
        killed: processes of the fleet that died, by name; none: nobody was to.
        effects_repeated: calls at the sink beyond the first of their event.
    """

    webhooks: dict[str, int]
    other_faults: dict[str, int]
    home_by: dict[str, int]
    received: dict[str, int]
    polls: int
    fixed_polls: int
    lost: int
    heal_median_s: float | None
    heal_worst_s: float | None
    news_median_s: float | None
    news_worst_s: float | None
    killed: dict[str, int] | None = None
    effects_repeated: int = 0

    def document(self) -> dict[str, Any]:
        """The figures for machines."""
        return asdict(self)


def count_figures(evidence: Evidence) -> Figures:
    """Work the figures out."""
    ledger, totals = evidence.ledger, evidence.ledger["totals"]
    said = endings(ledger)
    healed = list(_delays(evidence, said, only_lost=True))
    every = list(_delays(evidence, said, only_lost=False))
    webhooks = {"sent": totals.get("sent", 0), **dict(runs_by_fault(ledger)), "refused": totals.get("refused", 0)}
    return Figures(
        webhooks=webhooks,
        other_faults=_other_faults(totals, known=webhooks),
        home_by=dict(Counter(step.source for step in evidence.steps if step.after in TERMINAL)),
        received=dict(evidence.inbox),
        polls=totals.get("reads", 0),
        fixed_polls=sum(_fixed_polls(evidence, said)),
        lost=len(healed),
        heal_median_s=_rounded(median(healed)) if healed else None,
        heal_worst_s=_rounded(max(healed)) if healed else None,
        news_median_s=_rounded(median(every)) if every else None,
        news_worst_s=_rounded(max(every)) if every else None,
        killed=None if evidence.killed is None else dict(evidence.killed),
        effects_repeated=sum(count - 1 for count in evidence.effect_events.values()),
    )


def _delays(evidence: Evidence, said: dict[str, Ending], *, only_lost: bool) -> Iterator[float]:
    for job in evidence.jobs.values():
        ending = said.get(job.provider_job_id or "")
        if ending is None or job.finished_at is None or (only_lost and ending.fault not in LOST):
            continue
        # News can overtake the webhook that was to bring it; then nothing had to be healed for that long.
        yield max(0.0, (job.finished_at - ending.told_at).total_seconds())


def _fixed_polls(evidence: Evidence, said: dict[str, Ending]) -> Iterator[int]:
    began: dict[str, datetime] = beginnings(evidence.ledger)
    for run, ending in said.items():
        if run in began:
            took = max(ending.told_at - began[run], _SHORTEST)
            yield plan_interval(took, every=FIXED_POLLING).requests


def _other_faults(totals: dict[str, int], *, known: dict[str, int]) -> dict[str, int]:
    return {kind: count for kind, count in totals.items() if count and kind not in TRAFFIC and kind not in known}


def _rounded(seconds: float) -> float:
    return round(seconds, 3)
