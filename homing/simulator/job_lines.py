"""Reads a file of jobs: one JSON object a line, `{"input": {"model": …, …}, "key": "…"}`.

Blank lines and lines that begin with `#` are skipped.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from jobs.core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class JobLine:
    """One job to submit.

    Attributes:
        input: as `POST /v1/jobs` takes it, `model` included.
        key: the client's Idempotency-Key, where the file gives one.
    """

    input: dict[str, object]
    key: str | None = None


def read_job_lines(path: Path) -> list[JobLine]:
    """Read every job of a file.

    Raises:
        ConfigError: naming each bad line with its number, or that the file cannot be read or holds no job.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the jobs file {path}: {error}") from error
    jobs, faults = [], []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            jobs.append(_parse(line))
        except ValueError as error:
            faults.append(f"{path}:{number}: {error}")
    if not jobs and not faults:
        faults.append(f"{path} holds no job")
    if faults:
        raise ConfigError(faults)
    return jobs


def _parse(line: str) -> JobLine:
    value = json.loads(line)
    if not isinstance(value, dict) or not isinstance(value.get("input"), dict):
        raise ValueError('expected {"input": {…}}')
    key = value.get("key")
    if key is not None and not isinstance(key, str):
        raise ValueError('"key" must be text')
    unknown = sorted(set(value) - {"input", "key"})
    if unknown:
        raise ValueError(f"unknown field {unknown[0]!r}: a line holds input and key")
    return JobLine(value["input"], key)
