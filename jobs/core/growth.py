"""When dead letters come faster than they should: a rule with a margin, so that it does not flap. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from jobs.core.durations import format_duration, parse_duration

_RULE = re.compile(r"([0-9]{1,9}) ?/ ?(.+)")


@dataclass(frozen=True, slots=True)
class GrowthRule:
    """So many new ones within a window are too many.

    A dead letter is an exception that a person looks at: one now and then is life, twenty within ten minutes have one
    cause.
    """

    count: int = 20
    window: timedelta = timedelta(minutes=10)

    def __str__(self) -> str:
        """As it is written: ``20/10m``."""
        return f"{self.count}/{format_duration(self.window).replace(' ', '')}"

    def is_growing(self, recent: int, *, was: bool) -> bool:
        """Whether they grow, or still do: once told, until they come half as fast.

        Args:
            recent: New ones within the window.
            was: Whether it has been told.
        """
        return recent >= self.count or (was and recent > self.count // 2)


def parse_growth(value: object) -> GrowthRule:
    """Return a rule.

    Args:
        value: `20/10m`: so many within such a time.

    Raises:
        ValueError: what to write instead.
    """
    if isinstance(value, GrowthRule):
        return value
    match = _RULE.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None or not int(match[1]):
        raise ValueError(f"{str(value)[:40]!r} is not a number of letters and a time, like 20/10m")
    window = parse_duration(match[2])
    if not timedelta(seconds=1) <= window <= timedelta(days=7):
        raise ValueError("the time must be between 1s and 7d")
    return GrowthRule(int(match[1]), window)
