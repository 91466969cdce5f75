"""Medians, percentiles and ratios of few, noisy values."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which that share lies (nearest rank); 0 where there are none."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def ratio_of_medians(values: Sequence[float], yardstick: Sequence[float]) -> float | None:
    """How many times the yardstick; None where either is missing."""
    if not values or not yardstick or median(yardstick) == 0:
        return None
    return median(values) / median(yardstick)
