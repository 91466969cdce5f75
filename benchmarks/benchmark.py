"""The one shape of a benchmark: a setup that yields cases, each of which can be measured again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from benchmarks.stage import Stage

Figures: TypeAlias = Mapping[str, float]
Setup: TypeAlias = "Callable[[Stage], AbstractContextManager[Sequence[Case]]]"


@dataclass(frozen=True, slots=True)
class Case:
    """One thing that is measured.

    Attributes:
        name: In the table.
        measure: One repeat; returns figures by name. A figure's name ends in its unit.
        yardstick: The case it is divided by; None where it is one itself, or stands alone.
        repeats: Where one repeat is all that can be afforded, or makes sense; None: as many as the scale says.
    """

    name: str
    measure: Callable[[], Figures]
    yardstick: str | None = None
    repeats: int | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """What a ratio of two cases ought to be.

    Attributes:
        case: Its median is the dividend.
        yardstick: Its median is the divisor; None compares the figure itself.
        figure: Which.
        bound: The limit.
        sense: Whether more or less is better.
    """

    case: str
    figure: str
    bound: float
    yardstick: str | None = None
    sense: Literal[">=", "<="] = ">="

    def holds(self, value: float) -> bool:
        """Whether a value reaches it."""
        return value >= self.bound if self.sense == ">=" else value <= self.bound


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A question and how it is answered.

    Attributes:
        name: On the command line.
        question: One line for people.
        headline: The figure whose ratio to the yardstick is printed.
        setup: Prepares everything on a stage, yields the cases, and puts everything away.
        targets: What we want to see.
    """

    name: str
    question: str
    headline: str
    setup: Setup
    targets: tuple[Target, ...] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """All repeats of one benchmark."""

    benchmark: Benchmark
    cases: tuple[Case, ...]
    repeats: Mapping[str, Sequence[Figures]]
    remarks: tuple[str, ...] = ()

    def values(self, case: str, figure: str) -> list[float]:
        """A figure in every repeat, in order."""
        return [figures[figure] for figures in self.repeats.get(case, ()) if figure in figures]

    def figures(self) -> list[str]:
        """The names of all figures, the headline first."""
        names = {self.benchmark.headline: None}
        for repeats in self.repeats.values():
            names |= dict.fromkeys(name for figures in repeats for name in figures)
        return list(names)

    def judged(self) -> Iterator[tuple[Target, float]]:
        """Each target that could be judged, with the value reached."""
        for target in self.benchmark.targets:
            value = self._reached(target)
            if value is not None:
                yield target, value

    def _reached(self, target: Target) -> float | None:
        from benchmarks.statistics import ratio_of_medians  # noqa: PLC0415 - keeps this module free of imports

        values = self.values(target.case, target.figure)
        if target.yardstick is None:
            return sorted(values)[len(values) // 2] if values else None
        return ratio_of_medians(values, self.values(target.yardstick, target.figure))
