"""`homing plan`: what a way of waiting costs, before a job is sent."""

from __future__ import annotations

from datetime import timedelta
from itertools import accumulate
from typing import TYPE_CHECKING, Annotated, Any

import typer

from homing.cli.arguments import JsonFlag, parse_length
from homing.screen import Document, print_json, print_table
from jobs.core.durations import format_duration

if TYPE_CHECKING:
    from jobs.core.plan import Plan

_WAITS_SHOWN = 8
_EVERY, _BASE, _CAP = timedelta(seconds=10), timedelta(seconds=1), timedelta(seconds=60)


def _duration(text: str) -> timedelta:
    value = parse_length(text)
    if value <= timedelta(0):
        raise typer.BadParameter("must be longer than 0")
    return value


def _option(words: str, default: timedelta | None = None) -> Any:
    shown = True if default is None else format_duration(default)
    return typer.Option(parser=_duration, metavar="DURATION", help=words, show_default=shown)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(plan)


def plan(
    duration: Annotated[timedelta, _option("How long a job takes, like 47m.")],
    every: Annotated[timedelta, _option("Of polling at a fixed interval.", _EVERY)] = _EVERY,
    base: Annotated[timedelta, _option("First wait of a backoff.", _BASE)] = _BASE,
    cap: Annotated[timedelta, _option("Longest wait of a backoff.", _CAP)] = _CAP,
    as_json: JsonFlag = False,
) -> None:
    """Compare fixed polling, backoff and webhooks: requests, wasted requests, and how late each one learns."""
    from jobs.core.plan import first_waits, plan_backoff, plan_interval, plan_webhook  # noqa: PLC0415

    if cap < base:
        raise typer.BadParameter("is shorter than --base", param_hint="--cap")
    strategies = [
        plan_interval(duration, every=every),
        plan_backoff(duration, base=base, cap=cap),
        plan_webhook(duration),
    ]
    waits = first_waits(_WAITS_SHOWN, base=base, cap=cap)
    if as_json:
        print_json(_document(duration, strategies, waits))
    else:
        _print(duration, strategies, waits)


def _document(duration: timedelta, strategies: list[Plan], waits: list[timedelta]) -> Document:
    return {
        "duration_s": duration.total_seconds(),
        "strategies": [_strategy(each) for each in strategies],
        "waits_s": [wait.total_seconds() for wait in waits],
        "elapsed_s": [elapsed.total_seconds() for elapsed in accumulate(waits)],
    }


def _strategy(strategy: Plan) -> Document:
    return {
        "strategy": strategy.strategy,
        "requests": strategy.requests,
        "wasted": strategy.wasted,
        "requests_with_submit": strategy.requests_with_submit,
        "useful": strategy.useful,
        "waste_percent": round(strategy.waste_percent, 1),
        "delay_s": strategy.delay.total_seconds(),
        "mean_delay_s": strategy.mean_delay.total_seconds(),
        "worst_delay_s": strategy.worst_delay.total_seconds(),
    }


def _print(duration: timedelta, strategies: list[Plan], waits: list[timedelta]) -> None:
    print(f"A job of {format_duration(duration)}, waited for in three ways (wait first, then ask):\n")
    columns = ("strategy", "requests", "wasted", "with submit", "useful", "waste", "late: usual", "late: worst")
    print_table(columns, [_cells(each) for each in strategies], empty="")
    print(f"backoff waits    {_seconds(waits)} …")
    print(f"backoff elapsed  {_seconds(list(accumulate(waits)))} …")
    print("\nHoming polls by backoff and is told by webhook: whichever comes first brings the job home.")


def _cells(each: Plan) -> list[str]:
    return [
        each.strategy,
        str(each.requests),
        str(each.wasted),
        str(each.requests_with_submit),
        str(each.useful),
        f"{each.waste_percent:.1f} %",
        format_duration(each.mean_delay),
        format_duration(each.worst_delay),
    ]


def _seconds(spans: list[timedelta]) -> str:
    return " ".join(f"{each.total_seconds():g}" for each in spans)
