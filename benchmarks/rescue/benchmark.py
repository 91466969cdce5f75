"""The faults as cases of a benchmark, by what they are done to."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from benchmarks.benchmark import Benchmark, Case, Figures, Target
from benchmarks.rescue import cases
from benchmarks.rescue.scene import QUIET, Scene, scene
from benchmarks.stage import SQLITE, Stage

GOAL_S = 30.0
REPEATS = 3

Fault = Callable[[Scene], float]

ON_SQLITE: dict[str, Fault] = {
    "worker child, submitting": partial(cases.caught, matches=cases.is_submit),
    "worker child, polling": partial(cases.caught, matches=cases.is_poll, provider=QUIET),
    "worker child, fetching a file": partial(cases.caught, matches=cases.is_download, provider=QUIET, model="video"),
    "worker child, delivering": partial(cases.caught, matches=cases.is_delivery),
    "worker child, in a handler": cases.caught_handling,
    "worker children, applying webhooks": cases.caught_applying,
    "worker-io, main, submitting": partial(cases.caught, matches=cases.is_submit, main=True),
    "worker-io, main, polling": partial(cases.caught, matches=cases.is_poll, provider=QUIET, main=True),
    "worker-events, main": partial(cases.killed, name="worker-events"),
    "web, a child": partial(cases.killed, name="web", number=1),
    "web, main": partial(cases.killed, name="web"),
    "beat": partial(cases.killed, name="beat"),
    "Redis killed": partial(cases.under_way, harm=cases.kill_redis),
    "Redis frozen, from its thaw": partial(cases.under_way, harm=cases.freeze_redis),
    "Redis emptied": partial(cases.under_way, harm=cases.flush_redis),
    "Redis restarted empty": partial(cases.under_way, harm=cases.empty_redis),
    "SQLite, holder of the writer lock killed": partial(cases.under_way, harm=cases.hold_the_writer),
}
ON_POSTGRESQL: dict[str, Fault] = {
    "PostgreSQL restarted": partial(cases.under_way, harm=cases.restart_postgres),
    "PostgreSQL frozen, from its thaw": partial(cases.under_way, harm=cases.freeze_postgres),
}


def of(kind: str, faults: Mapping[str, Fault], *, repeats: int = REPEATS) -> Benchmark:
    """Some faults on one kind of database."""

    @contextmanager
    def setup(stage: Stage) -> Iterator[Sequence[Case]]:
        with scene(stage, kind) as made:
            yield [Case(name, partial(_measure, name, fault, made), repeats=repeats) for name, fault in faults.items()]

    targets = tuple(Target(case, "seconds", GOAL_S, sense="<=") for case in faults)
    return Benchmark("rescue", f"from a fault until what it interrupted is done, on {kind}", "seconds", setup, targets)


def _measure(name: str, fault: Fault, made: Scene) -> Figures:
    seconds = fault(made)
    print(f"{name}: {seconds:.1f} s", file=sys.stderr, flush=True)
    return {"seconds": seconds}


BENCHMARK = of(SQLITE, ON_SQLITE)
