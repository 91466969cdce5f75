"""The run as a picture: one small panel for each thing, time from left to right, the judged half shaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

_WIDTH, _PANEL, _LEFT, _RIGHT, _PLOT = 760, 150, 56, 150, 100
_COLOURS = ("#2b6cb0", "#c05621", "#2f855a", "#805ad5", "#b83280", "#4a5568")

Sample = Mapping[str, Any]
Curve = tuple[str, list[tuple[float, float]]]


def picture(samples: Sequence[Sample]) -> str:
    """An SVG document."""
    panels = [(title, [curve for curve in curves if curve[1]]) for title, curves in _panels(samples)]
    end = max(float(samples[-1]["at_s"]), 1.0)
    begin_of_half = float(samples[len(samples) // 2]["at_s"])
    body = "".join(
        part
        for number, (title, curves) in enumerate(panels)
        for part in _draw(title, curves, top=_PANEL * number + 10, end=end, shaded_from=begin_of_half)
    )
    height = _PANEL * len(panels) + 20
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" '
        f'font-size="11"><rect width="{_WIDTH}" height="{height}" fill="#fff"/>{body}</svg>\n'
    )


def _panels(samples: Sequence[Sample]) -> Iterator[tuple[str, list[Curve]]]:
    names = sorted({name for sample in samples for name in sample["processes"]})
    for unit in ("PSS MiB", "threads", "sockets"):
        yield unit, [_curve(samples, name, lambda s, n=name, u=unit: s["processes"][n][u]) for name in names]  # type: ignore[misc] # a lambda's defaults
    yield "Redis", [_curve(samples, unit, lambda s, u=unit: s["redis"][u]) for unit in ("used MiB", "keys", "clients")]  # type: ignore[misc] # as above
    yield (
        "rows that wait",
        [
            _curve(samples, name, lambda s, n=name: s["waiting"][n])  # type: ignore[misc] # as above
            for name in ("open jobs", "deliveries", "handler runs", "events to relay", "webhooks to apply")
        ],
    )
    yield (
        "rows, thousands (grow with the jobs)",
        [
            _curve(samples, name, lambda s, n=name: s["rows"][n] / 1000)  # type: ignore[misc] # as above
            for name in ("jobs", "inbox_events", "outbox", "deliveries", "job_transitions")
        ],
    )
    yield "on disk, MiB", [_curve(samples, name, lambda s, n=name: s["disk"][n]) for name in samples[-1]["disk"]]  # type: ignore[misc] # as above


def _curve(samples: Sequence[Sample], name: str, read: Callable[[Sample], float]) -> Curve:
    points = []
    for sample in samples:
        try:
            points.append((float(sample["at_s"]), float(read(sample))))
        except KeyError:
            continue  # it was away at that moment
    return name, points


def _draw(title: str, curves: list[Curve], *, top: int, end: float, shaded_from: float) -> Iterator[str]:
    most = max((value for _, points in curves for _, value in points), default=1.0) or 1.0
    span, floor = _WIDTH - _LEFT - _RIGHT, top + 20 + _PLOT
    shade = _LEFT + span * shaded_from / end
    yield _text(_LEFT, top + 12, title, weight="bold")
    yield f'<rect x="{shade:.0f}" y="{top + 20}" width="{_LEFT + span - shade:.0f}" height="{_PLOT}" fill="#f0f4f8"/>'
    yield f'<path d="M{_LEFT} {top + 20}V{floor}H{_LEFT + span}" stroke="#a0aec0" fill="none"/>'
    yield _text(_LEFT - 6, top + 28, f"{most:,.0f}", anchor="end")
    yield _text(_LEFT + span, floor + 14, f"{end / 60:.0f} min", anchor="end")
    for number, (name, points) in enumerate(curves):
        colour = _COLOURS[number % len(_COLOURS)]
        path = "L".join(f"{_LEFT + span * at / end:.1f} {floor - _PLOT * value / most:.1f}" for at, value in points)
        yield f'<path d="M{path}" stroke="{colour}" fill="none" stroke-width="1.4"/>'
        yield _text(_LEFT + span + 10, top + 30 + 14 * number, f"{name} {points[-1][1]:,.0f}", fill=colour)


def _text(
    x: float, y: float, words: str, *, anchor: str = "start", weight: str = "normal", fill: str = "#1a202c"
) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-weight="{weight}" fill="{fill}">{escape(words)}</text>'
