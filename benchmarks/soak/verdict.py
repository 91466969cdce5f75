"""What grew that should not: slopes over the second half of a soak, against bounds. Pure.

Two kinds of growth. A table grows with the jobs and events it remembers: expected, so what is judged is how many rows
and bytes one job costs, which must be the same at the end as in the middle. Everything else (memory, threads, open
files, Redis, rows that wait) must be level whatever has passed through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Any

#: A share of the middle value, or so many units, over one half; whichever allows more. Noise and garbage collection.
_SHARE = 0.10
_ALLOWED = {
    "PSS MiB": 12.0,
    "threads": 6.0,
    "files": 16.0,
    "sockets": 12.0,
    "used MiB": 3.0,
    "keys": 10.0,
    "clients": 10.0,
    "messages": 30.0,
    "waiting": 30.0,
    "seconds": 15.0,
    "WAL MiB": 8.0,
}
#: Rows and bytes per job may differ so much between the middle and the end: faults, tries and what streams tell vary.
_COST_SHARE, _COST_FLOOR = 0.20, 0.25
#: Not judged: the provider and its books are no part of the product.
FOREIGN = ("simulator",)
#: Its rows are batches: how many there are follows how busy the machine is. What it keeps is judged, in characters.
_BATCHED = "job_output"
#: These wait for a person or a clock, not for the fleet: what faults leave behind is counted, not called growth.
_NOT_LEVEL = ("dead letters", "reviews")

Sample = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that was watched.

    Attributes:
        name: For people.
        middle: At the beginning of the second half (a median of its first fifth).
        end: Of the last fifth.
        grown: By its slope over the second half.
        allowed: At most.
    """

    name: str
    middle: float
    end: float
    grown: float
    allowed: float

    @property
    def is_flat(self) -> bool:
        """Whether it stayed level."""
        return self.grown <= self.allowed


def judge(samples: Sequence[Sample]) -> list[Line]:
    """Every line of a run under load; the second half only.

    Raises:
        ValueError: Too few samples to see a slope.
    """
    half = samples[len(samples) // 2 :]
    if len(half) < 5:
        raise ValueError(f"{len(samples)} samples show no slope; let it run for longer")
    return [*_level(half), *_costs(half)]


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The median of all slopes between two points: an outlier, or a child that was replaced, moves nothing.

    Source: Theil and Sen's estimator.
    """
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(points, 2) if b[0] > a[0]]
    return median(slopes) if slopes else 0.0


def _level(half: Sequence[Sample]) -> Iterator[Line]:
    for name in sorted({name for sample in half for name in sample["processes"]} - {*FOREIGN}):
        for unit in ("PSS MiB", "threads", "files", "sockets"):
            yield _line(half, f"{name}: {unit}", unit, _reader("processes", name, unit))
    for unit in ("used MiB", "keys", "clients"):
        yield _line(half, f"Redis: {unit}", unit, _reader("redis", unit))
    if any("WAL MiB" in sample["disk"] for sample in half):
        yield _line(half, "SQLite: WAL MiB", "WAL MiB", _reader("disk", "WAL MiB"))
    yield _line(half, "messages in all queues", "messages", lambda sample: float(sum(sample["queues"].values())))
    for name in half[-1]["waiting"]:
        if name not in _NOT_LEVEL:
            yield _line(half, f"waiting: {name}", "waiting", _reader("waiting", name))
    yield _line(half, "longest due work, s", "seconds", lambda sample: max(sample["oldest_s"].values(), default=0.0))


def _costs(half: Sequence[Sample]) -> Iterator[Line]:
    begin, end = half[0], half[-1]
    for name, count in end["rows"].items():
        if name != _BATCHED and count > 2 * len(half):  # tables of a fixed size, or nearly, are level by themselves
            yield _cost(half, f"rows of {name} per job", _reader("rows", name))
    yield _cost(half, "characters of output per job", _reader("output"))
    if end["rows"]["jobs"] > begin["rows"]["jobs"]:
        yield _cost(half, "database KiB per job", lambda sample: sample["disk"]["database MiB"] * 1024)


def _reader(*path: str) -> Callable[[Sample], float | None]:
    def read(sample: Sample) -> float | None:
        found: Any = sample
        for name in path:
            found = found.get(name) if isinstance(found, Mapping) else None
        return None if found is None else float(found)

    return read


def _line(half: Sequence[Sample], name: str, unit: str, read: Callable[[Sample], float | None]) -> Line:
    points = [(sample["at_s"], value) for sample in half if (value := read(sample)) is not None]
    if not points:
        return Line(name, 0.0, 0.0, 0.0, 0.0)
    values = [value for _, value in points]
    fifth = max(1, len(values) // 5)
    grown = slope(points) * (points[-1][0] - points[0][0])
    return Line(
        name, median(values[:fifth]), median(values[-fifth:]), grown, max(_ALLOWED[unit], _SHARE * median(values))
    )


def _cost(half: Sequence[Sample], name: str, read: Callable[[Sample], float | None]) -> Line:
    """What a further job costs, in the first and in the last part of the half."""
    third = len(half) // 3
    first, last = _marginal(half[: third + 1], read), _marginal(half[-third - 1 :], read)
    return Line(name, first, last, last - first, max(_COST_SHARE * first, _COST_FLOOR))


def _marginal(part: Sequence[Sample], read: Callable[[Sample], float | None]) -> float:
    jobs = part[-1]["rows"]["jobs"] - part[0]["rows"]["jobs"]
    return ((read(part[-1]) or 0.0) - (read(part[0]) or 0.0)) / jobs if jobs else 0.0
