"""Results as pictures: horizontal bars with their range, written as SVG by hand."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from statistics import median

from benchmarks.benchmark import Case, Result
from benchmarks.table import number

_WIDTH, _LABELS, _ROW, _TOP = 760, 250, 30, 56
_BARS = _WIDTH - _LABELS - 110
_OURS, _YARDSTICK = "#2b6cb0", "#a0aec0"


def picture(result: Result) -> str:
    """The headline of every case, as an SVG document."""
    cases = [case for case in result.cases if result.values(case.name, result.benchmark.headline)]
    most = max((max(_values(result, case)) for case in cases), default=1) or 1
    height = _TOP + _ROW * len(cases) + 14
    rows = "".join(
        line for number_, case in enumerate(cases) for line in _row(result, case, top=_TOP + _ROW * number_, most=most)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" '
        f'font-size="13"><rect width="{_WIDTH}" height="{height}" fill="#fff"/>'
        f"{_text(12, 22, result.benchmark.question, weight='bold')}"
        f"{_text(12, 42, f'{result.benchmark.headline}; median, with the range of the repeats', fill='#666')}"
        f"{rows}</svg>\n"
    )


def _row(result: Result, case: Case, *, top: int, most: float) -> Iterator[str]:
    values = _values(result, case)
    middle, scale = median(values), _BARS / most
    colour = _OURS if case.yardstick else _YARDSTICK
    yield _text(_LABELS - 8, top + 17, case.name, anchor="end")
    yield f'<rect x="{_LABELS}" y="{top + 4}" width="{middle * scale:.1f}" height="18" fill="{colour}"/>'
    low, high = _LABELS + min(values) * scale, _LABELS + max(values) * scale
    yield f'<path d="M{low:.1f} {top + 13}H{high:.1f}" stroke="#1a202c" stroke-width="1.5"/>'
    yield _text(int(max(high, _LABELS + middle * scale)) + 8, top + 17, number(middle))


def _text(x: int, y: int, words: str, *, anchor: str = "start", weight: str = "normal", fill: str = "#1a202c") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-weight="{weight}" fill="{fill}">{escape(words)}</text>'


def _values(result: Result, case: Case) -> list[float]:
    return result.values(case.name, result.benchmark.headline)
