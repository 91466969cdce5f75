"""Measures: every case once, then every case again, so that a busy minute of the machine hits all alike."""

from __future__ import annotations

import sys
from collections import defaultdict

from benchmarks.benchmark import Benchmark, Figures, Result
from benchmarks.stage import Stage


def run(benchmark: Benchmark, stage: Stage) -> Result:
    """Runs one benchmark."""
    repeats: dict[str, list[Figures]] = defaultdict(list)
    stage.remarks.clear()
    with benchmark.setup(stage) as cases:
        for number in range(stage.scale.repeats):
            for case in cases:
                if case.repeats is None or number < case.repeats:
                    _say(f"{benchmark.name} {number + 1}/{stage.scale.repeats}: {case.name}")
                    repeats[case.name].append(case.measure())
    _say("")
    return Result(benchmark, tuple(cases), dict(repeats), tuple(stage.remarks))


def _say(words: str) -> None:
    """One line that is overwritten, for people who wait."""
    if sys.stderr.isatty():
        print(f"\r\033[K{words[:110]}", end="", file=sys.stderr, flush=True)
