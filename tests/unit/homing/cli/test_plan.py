"""What polling costs, as people and machines read it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.unit.homing.cli.conftest import Run


def strategies(run: Run, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run("plan", *arguments, "--json").document["strategies"]
    return found


def test_two_hours_polled_each_minute(run: Run) -> None:
    fixed, _backoff, webhook = strategies(run, "--duration", "2h", "--every", "60s")

    assert (fixed["requests"], fixed["wasted"]) == (120, 119)
    assert (fixed["requests_with_submit"], fixed["useful"], fixed["waste_percent"]) == (121, 2, 98.3)
    assert webhook["requests_with_submit"] == 2


def test_what_its_help_gives_as_a_default_it_takes(run: Run) -> None:
    shown = re.findall(r"default: \(?(\w+)\)?", run("plan", "--help").out)

    assert shown == ["10s", "1s", "1m"]
    assert run("plan", "--duration", "5m", "--every", shown[0], "--base", shown[1], "--cap", shown[2]).code == 0


def test_a_backoff_from_one_second_to_a_minute(run: Run) -> None:
    document = run("plan", "--duration", "10m", "--base", "1s", "--cap", "60s", "--json").document

    assert document["waits_s"] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert document["elapsed_s"] == [1, 3, 7, 15, 31, 63, 123, 183]


def test_forty_seven_minutes_by_interval_and_by_backoff(run: Run) -> None:
    arguments = ("--duration", "47m", "--every", "30s", "--base", "2s", "--cap", "120s")
    fixed, backoff, _webhook = strategies(run, *arguments)

    assert (fixed["requests"], fixed["wasted"]) == (94, 93)
    assert (backoff["requests"], backoff["wasted"]) == (29, 28)


def test_the_page_holds_the_same_numbers(run: Run) -> None:
    shown = run("plan", "--duration", "2h", "--every", "60s").out

    for part in ("120", "119", "121", "98.3 %", "1 2 4 8 16 32 60 60", "1 3 7 15 31 63 123 183"):
        assert part in shown


@pytest.mark.parametrize(
    "arguments", [("--duration", "0s"), ("--duration", "1m", "--every", "0s"), ("--duration", "1m", "--cap", "1ms")]
)
def test_a_plan_that_means_nothing_is_refused(run: Run, arguments: tuple[str, ...]) -> None:
    assert run("plan", *arguments).code == 2
