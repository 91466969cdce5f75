"""Results for people."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from rich.console import Console
from rich.table import Table

from benchmarks.benchmark import Case, Result
from benchmarks.statistics import ratio_of_medians


def show(result: Result, console: Console) -> None:
    """Prints a result: medians, the range of the headline, the ratio to the yardstick, targets and remarks."""
    figures = result.figures()
    table = Table(title=f"{result.benchmark.name}: {result.benchmark.question}", title_justify="left")
    table.add_column("case", no_wrap=True)
    for figure in figures:
        table.add_column(figure, justify="right")
    table.add_column("range", justify="right")
    table.add_column("ratio", justify="right")
    for case in result.cases:
        table.add_row(case.name, *_cells(result, case, figures))
    console.print(table)
    for line in _lines(result):
        console.print(line, highlight=False)


def _cells(result: Result, case: Case, figures: list[str]) -> Iterator[str]:
    for figure in figures:
        values = result.values(case.name, figure)
        yield number(median(values)) if values else ""
    headline = result.values(case.name, result.benchmark.headline)
    yield f"{number(min(headline))} - {number(max(headline))}" if headline else ""
    yield _ratio(result, case)


def _ratio(result: Result, case: Case) -> str:
    if case.yardstick is None:
        return ""
    headline = result.benchmark.headline
    ratio = ratio_of_medians(result.values(case.name, headline), result.values(case.yardstick, headline))
    return "" if ratio is None else f"{ratio:.2f} of {case.yardstick}"


def _lines(result: Result) -> Iterator[str]:
    for target, value in result.judged():
        against = f" / {target.yardstick}" if target.yardstick else ""
        verdict = "met" if target.holds(value) else "MISSED"
        yield f"  {target.figure}, {target.case}{against}: {value:.2f}, wanted {target.sense} {target.bound}: {verdict}"
    for remark in result.remarks:
        yield f"  Note: {remark}."


def number(value: float) -> str:
    """Three digits that matter."""
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"
