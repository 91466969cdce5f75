"""``python -m benchmarks [names] [--quick] [--json] [--plots]``."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

from benchmarks import ack, deliver, drain, duplicates, endtoend, idle, latency, memory, polling, streams, sweep
from benchmarks.benchmark import Benchmark, Result
from benchmarks.machine import describe
from benchmarks.plot import picture
from benchmarks.rescue import benchmark as rescue
from benchmarks.runner import run
from benchmarks.scale import FULL, QUICK
from benchmarks.stage import Stage
from benchmarks.table import show

BENCHMARKS: tuple[Benchmark, ...] = (
    ack.BENCHMARK,
    duplicates.BENCHMARK,
    drain.BENCHMARK,
    deliver.BENCHMARK,
    endtoend.BENCHMARK,
    latency.BENCHMARK,
    streams.BENCHMARK,
    sweep.BENCHMARK,
    polling.BENCHMARK,
    idle.BENCHMARK,
    memory.BENCHMARK,
    rescue.BENCHMARK,
)
_RESULTS = Path(__file__).with_name("results")


def main() -> None:
    """The command."""
    options = _parser().parse_args()
    chosen = [benchmark for benchmark in BENCHMARKS if not options.names or benchmark.name in options.names]
    console = Console(width=max(120, Console().width))
    stage = Stage(QUICK if options.quick else FULL)
    try:
        facts = describe(stage.folder)
        for name, fact in facts.items():
            console.print(f"{name}: {fact}", highlight=False)
        for benchmark in chosen:
            _run_one(benchmark, stage, console, facts, options)
    finally:
        stage.close()


def _run_one(
    benchmark: Benchmark, stage: Stage, console: Console, facts: Mapping[str, str], options: argparse.Namespace
) -> None:
    begin = time.monotonic()
    result = run(benchmark, stage)
    console.print()
    show(result, console)
    console.print(f"  ({time.monotonic() - begin:.0f} s)", highlight=False)
    if options.json:
        _RESULTS.mkdir(exist_ok=True)
        document = json.dumps({"facts": dict(facts), **_plain(result)}, indent=2)
        (_RESULTS / f"{benchmark.name}.json").write_text(document + "\n", encoding="utf-8")
    if options.plots:
        _RESULTS.mkdir(exist_ok=True)
        (_RESULTS / f"{benchmark.name}.svg").write_text(picture(result), encoding="utf-8")


def _plain(result: Result) -> dict[str, object]:
    return {
        "benchmark": result.benchmark.name,
        "question": result.benchmark.question,
        "yardsticks": {case.name: case.yardstick for case in result.cases},
        "repeats": {name: [dict(figures) for figures in repeats] for name, repeats in result.repeats.items()},
        "remarks": list(result.remarks),
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Our figures beside their yardsticks.")
    names = [benchmark.name for benchmark in BENCHMARKS]
    parser.add_argument("names", nargs="*", metavar="name", help=f"some of: {', '.join(names)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="small sizes and few repeats: a look, no figures to quote")
    parser.add_argument("--json", action="store_true", help="write benchmarks/results/<name>.json")
    parser.add_argument("--plots", action="store_true", help="write benchmarks/results/<name>.svg")
    return parser


if __name__ == "__main__":
    main()
