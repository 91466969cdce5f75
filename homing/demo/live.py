"""The live table: redrawn on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from homing.demo.telling import Teller
from homing.demo.watching import Sight
from jobs.core.states import JobState

if TYPE_CHECKING:
    from rich.table import Table

Show: TypeAlias = Callable[[Sight], None]

_LINE_EVERY_S = 2.0
_BAR_CHARS = 30


@contextmanager
def live_table(*, title: str, tell: Teller) -> Iterator[Show]:
    """Show sights for as long as the block lasts; the last one stays on the screen."""
    if not sys.stderr.isatty():
        yield _lines(tell)
        return
    from rich.live import Live  # noqa: PLC0415 - not needed for plain lines

    from homing.screen import console  # noqa: PLC0415

    with Live(console=console(stderr=True), refresh_per_second=8) as live:
        yield lambda sight: live.update(draw(sight, title=title))


def draw(sight: Sight, *, title: str) -> Table:
    """Return a sight as a table."""
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(
        title=f"{title} · {sight.elapsed_s:.0f} s",
        box=box.ROUNDED,
        show_header=False,
        title_justify="left",
        title_style="bold",
    )
    table.add_column(style="bold")
    table.add_column(min_width=_BAR_CHARS + 20, max_width=80)
    for name, text in _rows(sight):
        table.add_row(name, Text(text))
    return table


def describe(sight: Sight) -> str:
    """Return a sight as one line."""
    parts = [f"{sight.home}/{sight.wanted} home", counted(sight.states)]
    if sight.home_by:
        parts.append(f"home by {counted(sight.home_by)}")
    parts.append(f"effects {sight.effects}")
    if sight.faults:
        parts.append(f"faults {sum(sight.faults.values())}")
    return " · ".join(part for part in parts if part)


def counted(counts: dict[str, int]) -> str:
    """Return counts as text, in the order of a job's life where they are states."""
    return " ".join(f"{name} {count}" for name, count in sorted(counts.items(), key=_rank) if count)


def _rows(sight: Sight) -> Iterator[tuple[str, str]]:
    done = round(_BAR_CHARS * min(1.0, sight.home / max(1, sight.wanted)))
    yield "home", f"{'█' * done}{'░' * (_BAR_CHARS - done)} {sight.home}/{sight.wanted}"
    yield "jobs", counted(sight.states) or "none yet"
    yield "came home by", counted(sight.home_by) or "-"
    yield "effects at the sink", str(sight.effects)
    yield "the provider's faults", ", ".join(f"{kind} {count}" for kind, count in sight.faults.items()) or "none yet"
    if sight.waiting:
        yield "wait for a person", str(sight.waiting)


def _rank(item: tuple[str, int]) -> tuple[int, str]:
    order = (*JobState, "webhook", "poll")
    name = item[0]
    return (order.index(name) if name in order else len(order), name)


def _lines(tell: Teller) -> Show:
    last: list[tuple[float, str]] = [(-_LINE_EVERY_S, "")]

    def show(sight: Sight) -> None:
        told_at_s, told = last[0]
        line = describe(sight)
        if line != told and (sight.is_over or sight.elapsed_s - told_at_s >= _LINE_EVERY_S):
            tell(line)
            last[0] = (sight.elapsed_s, line)

    return show
