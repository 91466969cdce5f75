"""The page that compares the ways to learn of a job's end, and its numbers."""

from __future__ import annotations

import ast
import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import homing.client
from homing.cli import main
from homing.client import Homing
from homing.client.following import _LONG_POLL_S
from jobs.core.durations import format_duration

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "howto" / "wait_for_a_job.md").read_text(encoding="utf-8")
REFERENCE = (DOCS / "reference" / "client.md").read_text(encoding="utf-8")


def test_the_numbers_are_those_of_homing_plan(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["plan", "--duration", "47m", "--json"])
    strategies: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["strategies"]

    rows = re.findall(r"^\| (poll .*|webhook) \| (\d+) \| (\d+) \| (\w+) \| (\w+) \|$", PAGE, re.MULTILINE)

    assert [row[1:] for row in rows] == [
        (
            str(each["requests"]),
            str(each["wasted"]),
            format_duration(timedelta(seconds=each["mean_delay_s"])),
            format_duration(timedelta(seconds=each["worst_delay_s"])),
        )
        for each in strategies
    ]


def test_long_polls_are_counted_as_the_client_asks() -> None:
    assert f"A long poll of {_LONG_POLL_S} s asks {47 * 60 // _LONG_POLL_S} times" in PAGE


@pytest.mark.parametrize("sample", re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
def test_samples_import_what_there_is(sample: str) -> None:
    wanted = [
        alias.name
        for node in ast.walk(ast.parse(sample))
        if isinstance(node, ast.ImportFrom) and node.module == "homing.client"
        for alias in node.names
    ]

    assert wanted
    assert set(wanted) <= set(homing.client.__all__)


def test_the_reference_lists_every_method_and_every_error() -> None:
    methods = {name for name in vars(Homing) if not name.startswith("_")} - {"close"}

    assert methods == set(re.findall(r"^\| `(\w+)\(", REFERENCE, re.MULTILINE))
    for name in homing.client.__all__:
        assert name in REFERENCE
