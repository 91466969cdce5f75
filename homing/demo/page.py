"""The proof table, as a page for people and as a document for machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from homing.demo.figures import FIXED_POLLING, Figures
from homing.demo.options import DemoOptions
from homing.demo.proof import Check
from jobs.core.durations import format_duration


def document(options: DemoOptions, checks: Sequence[Check], figures: Figures, *, elapsed_s: float) -> dict[str, Any]:
    """Return the result for machines."""
    return {
        "held": all(check.held for check in checks),
        "jobs": options.jobs,
        "seed": options.seed,
        "faults": options.faults,
        "kill": options.kill,
        "elapsed_s": round(elapsed_s, 1),
        "checks": [asdict(check) for check in checks],
        "figures": figures.document(),
    }


def print_page(checks: Sequence[Check], figures: Figures, *, title: str) -> None:
    """Print the result for people."""
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    from homing.screen import console  # noqa: PLC0415

    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for column in ("", "claim", "wanted", "found"):
        table.add_column(column, justify="right" if column in ("wanted", "found") else "left")
    for check in checks:
        mark = Text("✓", "green") if check.held else Text("✗ FAILED", "bold red")
        table.add_row(mark, Text(check.claim), Text(str(check.wanted)), Text(str(check.found)))
    screen = console()
    screen.print(table)
    rows = Table.grid(padding=(0, 2))
    for name, text in lines(figures):
        rows.add_row("", Text(f"{name:<22}", no_wrap=True), Text(text))  # what is too long goes on below itself
    screen.print(rows)


def lines(figures: Figures) -> Iterator[tuple[str, str]]:
    """Yield the figures as name and text."""
    if figures.killed is not None:
        again = f"; {figures.effects_repeated} effects were made again, under their event's id"
        yield "killed", f"{_counts(figures.killed) or 'nobody'}{again}"
    yield "webhooks, by run", _counts(figures.webhooks)
    yield "other faults", _counts(figures.other_faults) or "none"
    yield "received", _counts(figures.received) or "none"
    yield "jobs came home by", _counts(figures.home_by)
    fixed = f"fixed polling every {format_duration(FIXED_POLLING)} would have made {figures.fixed_polls}"
    yield "polls made", f"{figures.polls}; {fixed}"
    yield "healing a lost webhook", _times(figures.heal_median_s, figures.heal_worst_s, figures.lost)
    yield "news of a job's end", _times(figures.news_median_s, figures.news_worst_s, None)


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in counts.items())


def _times(usual_s: float | None, worst_s: float | None, count: int | None) -> str:
    if usual_s is None or worst_s is None:
        return "none was lost"
    of = "" if count is None else f" ({count} jobs)"
    return f"median {usual_s:.1f} s, worst {worst_s:.1f} s{of}"
