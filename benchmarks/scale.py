"""How much of everything: a look within two minutes, or figures worth writing down."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """Sizes of one run.

    Attributes:
        repeats: Of each case, interleaved with the others.
        load_s: Seconds of load in one repeat.
        drained: Events applied in one repeat of the drain.
        naive_drained: The same for what works event by event.
        delivered: Events told in one repeat.
        latency_s: Seconds at each rate.
        open_jobs: Sizes of the table the sweep looks into.
        idle_s: Seconds an idle fleet is watched.
        memory_events: Events between the two looks at the memory.
    """

    repeats: int
    load_s: float
    drained: int
    naive_drained: int
    delivered: int
    latency_s: float
    open_jobs: tuple[int, ...]
    idle_s: float
    memory_events: int


QUICK = Scale(
    repeats=2,
    load_s=1.0,
    drained=2_000,
    naive_drained=300,
    delivered=300,
    latency_s=1.0,
    open_jobs=(10_000, 100_000),
    idle_s=6.0,
    memory_events=3_000,
)
FULL = Scale(
    repeats=5,
    load_s=4.0,
    drained=10_000,
    naive_drained=2_000,
    delivered=1_000,
    latency_s=15.0,
    open_jobs=(10_000, 100_000, 1_000_000),
    idle_s=120.0,
    memory_events=1_000_000,
)
