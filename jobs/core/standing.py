"""How a provider's jobs came home lately, and whether its webhooks can be relied on. Pure.

An end is ``[source, state, seconds it may have gone unnoticed]``; ends are ordered, oldest first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, TypeAlias

from jobs.core.observations import Source
from jobs.core.states import JobState

Ends: TypeAlias = "Sequence[Sequence[Any]]"

#: So many of the newest ends are kept.
RECENT = 50
# Fewer say too little; more than the last twenty would make the recovery slow to see.
_MIN_ENDS, _JUDGED = 10, 20
# Far apart, so that a provider between the two does not flap.
_DEGRADED_FROM, _RECOVERED_FROM = 0.5, 0.25


def is_degraded(ends: Ends, *, was: bool) -> bool:
    """Whether too many jobs come home without their webhook: from a half on, until it is a quarter."""
    judged = ends[-_JUDGED:]
    if len(judged) < _MIN_ENDS:
        return was
    return (poll_share(judged) or 0.0) > _RECOVERED_FROM if was else (poll_share(judged) or 0.0) >= _DEGRADED_FROM


def poll_share(ends: Ends) -> float | None:
    """The share that came home by poll, from 0 to 1; None of none."""
    return _share(ends, lambda end: end[0] == Source.POLL)


def error_rate(ends: Ends) -> float | None:
    """The share that failed, from 0 to 1; None of none."""
    return _share(ends, lambda end: end[1] == JobState.FAILED)


def heal_s(ends: Ends) -> tuple[float, float] | None:
    """Median and longest time that an end which a poll found may have gone unnoticed."""
    healed = [end[2] for end in ends if end[0] == Source.POLL]
    return (median(healed), max(healed)) if healed else None


def _share(ends: Ends, counts: Callable[[Sequence[Any]], bool]) -> float | None:
    return round(sum(map(counts, ends)) / len(ends), 3) if ends else None
