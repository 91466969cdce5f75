"""What a run that was killed with SIGKILL leaves behind: its fleet ends by itself, its Redis and PostgreSQL do not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil

from tests.crashing.stage import Stage

_NAME = "services.json"
_SERVERS = ("redis-server", "valkey-server", "postgres")


def remember(folder: Path, stage: Stage) -> None:
    """Notes where the servers of this run live that live elsewhere."""
    folders = [str(stage.postgres.folder)] if stage.postgres else []
    (folder / _NAME).write_text(json.dumps(folders), encoding="utf-8")


def end_leftovers(folder: Path) -> None:
    """Ends the servers that work below these folders, and removes what lies elsewhere."""
    try:
        elsewhere = [Path(path) for path in json.loads((folder / _NAME).read_text(encoding="utf-8"))]
    except (FileNotFoundError, ValueError):
        return
    _end_servers([folder, *elsewhere])
    for path in elsewhere:
        shutil.rmtree(path, ignore_errors=True)
    (folder / _NAME).unlink()


def _end_servers(folders: Iterable[Path]) -> None:
    for process in psutil.process_iter(["name"]):
        with suppress(psutil.Error):
            if process.info["name"].startswith(_SERVERS) and any(
                Path(process.cwd()).is_relative_to(folder) for folder in folders
            ):
                process.kill()
