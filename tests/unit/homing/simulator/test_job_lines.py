"""The file of jobs: readable by people, checked line by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.simulator import JobLine, read_job_lines
from homing.simulator.models import MODELS
from jobs.core.errors import ConfigError

EXAMPLES = Path(__file__).parents[4] / "examples" / "jobs.jsonl"


def test_blank_lines_and_comments_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "jobs.jsonl"
    path.write_text('# a note\n\n{"input": {"model": "video"}, "key": "k"}\n{"input": {}}\n', encoding="utf-8")

    assert read_job_lines(path) == [JobLine({"model": "video"}, "k"), JobLine({})]


def test_every_bad_line_is_named_with_its_number(tmp_path: Path) -> None:
    path = tmp_path / "jobs.jsonl"
    path.write_text('{"input": {}}\nnonsense\n[]\n{"input": {}, "key": 7}\n{"input": {}, "kye": "k"}\n')

    with pytest.raises(ConfigError) as caught:
        read_job_lines(path)

    assert [f"{path}:{number}:" in str(caught.value) for number in (1, 2, 3, 4, 5)] == [False, True, True, True, True]


@pytest.mark.parametrize("content", [b"", b"# nothing\n", b"\xff\xfe"])
def test_a_file_without_jobs_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "jobs.jsonl"
    path.write_bytes(content)

    with pytest.raises(ConfigError):
        read_job_lines(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        read_job_lines(tmp_path / "nowhere.jsonl")


def test_the_examples_are_forty_short_jobs_for_every_model() -> None:
    lines = read_job_lines(EXAMPLES)

    durations = [line.input["duration_s"] for line in lines]
    keys = [line.key for line in lines if line.key is not None]
    assert len(lines) == 40
    assert {line.input["model"] for line in lines} == set(MODELS)
    assert all(isinstance(duration, int | float) and 0.5 <= duration <= 12 for duration in durations)
    assert len(keys) == len(set(keys)) > 0
