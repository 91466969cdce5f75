"""What a run that was killed with SIGKILL leaves behind: its fleet ends by itself, its Redis and PostgreSQL do not."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path

import psutil

from tests.crashing.stage import Stage

_NAME = "services.json"
_SERVERS = ("redis-server", "valkey-server", "postgres")


def remember(folder: Path, stage: Stage) -> None:
    """Notes the services of this run."""
    postgres = stage.postgres
    known = {
        "pids": [stage.redis.pid, *([postgres.pid] if postgres else [])],
        "folders": [str(postgres.folder)] if postgres else [],
    }
    (folder / _NAME).write_text(json.dumps(known), encoding="utf-8")


def end_leftovers(folder: Path) -> None:
    """Ends those of the run before, if it could not. A number may be a stranger's by now, so its name is looked at."""
    try:
        known = json.loads((folder / _NAME).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return
    for pid in known["pids"]:
        with suppress(psutil.Error):
            process = psutil.Process(pid)
            if any(server in " ".join(process.cmdline()) for server in _SERVERS):
                process.kill()
    for path in known["folders"]:
        shutil.rmtree(path, ignore_errors=True)
    (folder / _NAME).unlink()
