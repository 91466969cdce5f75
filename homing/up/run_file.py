"""``run.json``: what is running, for the commands and people beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil

NAME = "run.json"


@dataclass(frozen=True, slots=True)
class Running:
    """A running fleet, as it stands in ``run.json``.

    Attributes:
        url: Of the API.
        api_key: An administrator's key for it.
        flower_url: Where Flower listens, with ``flower_user`` and ``flower_password``.
        simulator_url: Of the provider simulator, where one runs.
        pids: By process name: the main process, then its children.
    """

    url: str
    api_key: str = field(repr=False)
    flower_url: str | None
    flower_user: str | None
    flower_password: str | None = field(repr=False)
    simulator_url: str | None
    pids: Mapping[str, list[int]] = field(default_factory=dict)


def write(running: Running, data_dir: Path) -> None:
    """Replaces the file in one step; only its owner may read it."""
    path = data_dir / NAME
    draft = path.with_name(f".{NAME}.{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_text(json.dumps(asdict(running), indent=2) + "\n", encoding="utf-8")
    draft.replace(path)


def read(data_dir: Path) -> Running | None:
    """The fleet running from this folder, if any."""
    try:
        return Running(**json.loads((data_dir / NAME).read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def remove(data_dir: Path) -> None:
    """Says that nothing runs from this folder any more."""
    (data_dir / NAME).unlink(missing_ok=True)


def living_pids(pid_files: Mapping[str, Path]) -> dict[str, list[int]]:
    """The processes behind the pid files, each with its children.

    One pass over the machine's processes for all of them: asking for each one's children would be a pass each.
    """
    mains = {name: pid for name, path in pid_files.items() if (pid := pid_in(path)) is not None}
    offspring = _children_by_parent()
    return {name: [pid, *sorted(_descendants(pid, offspring))] for name, pid in mains.items() if psutil.pid_exists(pid)}


def pid_in(path: Path) -> int | None:
    """The number in a pid file; None where there is no such file, or nothing in it yet."""
    try:
        return int(path.read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return None


def _children_by_parent() -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for process in psutil.process_iter(["ppid", "status"]):
        if process.info["ppid"] is not None and process.info["status"] != psutil.STATUS_ZOMBIE:
            children.setdefault(process.info["ppid"], []).append(process.pid)
    return children


def _descendants(pid: int, children: Mapping[int, Iterable[int]]) -> list[int]:
    found: list[int] = []
    for child in children.get(pid, ()):
        found += [child, *_descendants(child, children)]
    return found
