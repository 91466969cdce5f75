"""``python -m benchmarks.rescue [--repeats N] [--only WORDS] [--no-page]``: every fault, and the table of the page."""

from __future__ import annotations

import argparse
import dataclasses
import datetime as dt
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median

from rich.console import Console

from benchmarks.benchmark import Result
from benchmarks.machine import describe
from benchmarks.rescue.benchmark import GOAL_S, ON_POSTGRESQL, ON_SQLITE, of
from benchmarks.runner import run
from benchmarks.scale import FULL
from benchmarks.stage import POSTGRESQL, SQLITE, Stage
from benchmarks.table import number, show

_PAGE = Path(__file__).parents[2] / "docs" / "proof" / "rescue.md"
_BEGIN, _END = "<!-- figures -->", "<!-- end of figures -->"


def main() -> int:
    """The command."""
    options = _parser().parse_args()
    stage = Stage(dataclasses.replace(FULL, repeats=options.repeats))
    results = []
    try:
        facts = describe(stage.folder)
        for kind, faults in ((SQLITE, ON_SQLITE), (POSTGRESQL, ON_POSTGRESQL)):
            chosen = {name: fault for name, fault in faults.items() if re.search(options.only, name)}
            if chosen:
                results.append(run(of(kind, chosen, repeats=options.repeats), stage))
                show(results[-1], Console(width=120))
    finally:
        stage.close()
    if not options.no_page:
        _write_page(results, facts)
    late = [name for result in results for name, worst in _worst(result).items() if worst > GOAL_S]
    print(f"later than {GOAL_S:g} s: {', '.join(late) or 'nothing'}", file=sys.stderr)
    return 1 if late else 0


def _worst(result: Result) -> dict[str, float]:
    return {case.name: max(result.values(case.name, "seconds")) for case in result.cases}


def _write_page(results: list[Result], facts: Mapping[str, str]) -> None:
    text = _PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    _PAGE.write_text(f"{before}{_BEGIN}\n{chr(10).join(_lines(results, facts))}\n{_END}{after}", encoding="utf-8")


def _lines(results: list[Result], facts: Mapping[str, str]) -> Iterator[str]:
    today = dt.datetime.now(dt.UTC).date().isoformat()
    yield f"Measured {today} on {facts['machine']}, {facts['system']}, load before {facts['load before']}."
    yield ""
    yield "| killed or harmed | median, s | worst, s | times |"
    yield "| --- | ---: | ---: | ---: |"
    for result in results:
        for case in result.cases:
            values = result.values(case.name, "seconds")
            middle, worst = (number(round(value, 1)) for value in (median(values), max(values)))
            yield f"| {case.name} | {middle} | {worst} | {len(values)} |"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rescue", description="From a fault to its rescue.")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="", help="cases whose name matches this regular expression")
    parser.add_argument("--no-page", action="store_true", help="leave docs/proof/rescue.md as it is")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
