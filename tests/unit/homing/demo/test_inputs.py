"""What the demo sends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from homing.demo.options import OWN_JOBS, DemoOptions, read_inputs
from homing.simulator.plan import slots_of
from jobs.core.errors import ConfigError

EXAMPLES = Path(__file__).parents[4] / "examples" / "jobs.jsonl"


def test_the_forty_that_come_along_are_the_readable_examples() -> None:
    assert OWN_JOBS.read_text(encoding="utf-8") == EXAMPLES.read_text(encoding="utf-8")
    assert len(read_inputs(DemoOptions(jobs=40))) == 40


def test_more_jobs_than_inputs_are_all_distinct() -> None:
    lines = read_inputs(DemoOptions(jobs=300))

    assert len(lines) == 300
    assert {ordinal for _text, ordinal in slots_of([line.input for line in lines])} == {0}
    keys = [line.key for line in lines if line.key]
    assert len(keys) == len(set(keys))


def test_fewer_jobs_are_the_first_ones() -> None:
    assert read_inputs(DemoOptions(jobs=3)) == read_inputs(DemoOptions(jobs=40))[:3]


def test_a_file_of_ones_own_is_repeated_to_the_number(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps({"input": {"model": "video"}, "key": "k"}) + "\n", encoding="utf-8")

    lines = read_inputs(DemoOptions(jobs=3, input_file=path))

    assert [line.input.get("seed") for line in lines] == [None, 1, 2]
    assert [line.key for line in lines] == ["k", "k-1", "k-2"]


def test_a_file_with_a_bad_line_names_it(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text("{}\n", encoding="utf-8")

    with pytest.raises(ConfigError, match=r"bad\.jsonl:1"):
        read_inputs(DemoOptions(input_file=path))
