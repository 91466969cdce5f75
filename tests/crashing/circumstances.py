"""What a run was made on, and of what."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.machine import describe

_ROOT = Path(__file__).parents[2]


def describe_run(folder: Path) -> dict[str, Any]:
    """The commit, the machine and the moment."""
    machine = {name: text for name, text in describe(folder).items() if name != "generator"}
    return {"commit": _commit(), "machine": machine, "at": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"}


def _commit() -> str:
    """With a mark where files under version control were changed after it."""
    try:
        commit = _git("rev-parse", "--short=12", "HEAD")
        return f"{commit} and changes" if _git("status", "--porcelain", "--untracked-files=no") else commit
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=_ROOT, capture_output=True, text=True, check=True).stdout.strip()
