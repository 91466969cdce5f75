"""The data folder of a fleet: held by one runner at a time, cleared of a dead runner's processes, keyed."""

from __future__ import annotations

import fcntl
import io
import os
import shutil
import tempfile
from pathlib import Path

import psutil

from homing.up import run_file
from jobs.core.errors import ConfigError, Unauthorized
from jobs.services import keys
from jobs.storage.database import Database

_KEY_FILE = "api_key"
_SCRATCH_PREFIX = "homing-"


def hold(data_dir: Path) -> io.FileIO:
    """Makes the folder this runner's own until the returned file is closed (or the runner dies, however).

    Raises:
        ConfigError: Another runner holds it.
    """
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    held = io.FileIO(data_dir / "up.lock", "a")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        held.close()
        raise ConfigError(
            f"a fleet is running from {data_dir} already; stop it, or choose another --data-dir"
        ) from None
    return held


def end_leftovers(data_dir: Path) -> None:
    """Kills processes that a runner killed with SIGKILL left behind.

    On Linux they end by themselves (``launch.py``); elsewhere, or while they still finish their tasks, the last
    ``run.json`` names them. A number may belong to a stranger by now, so its settings must name this folder.
    """
    left = run_file.read(data_dir)
    for pid in [pid for pids in left.pids.values() for pid in pids] if left else []:
        try:
            process = psutil.Process(pid)
            if process.environ().get("HOMING_DATA_DIR") == str(data_dir):
                process.kill()
        except psutil.Error:
            continue  # gone, or not ours to look at
    run_file.remove(data_dir)


def make_scratch(data_dir: Path) -> Path:
    """A private temporary folder for this run; that of a runner which was killed is removed first.

    Not below the data folder itself: supervisor's configuration cannot hold every path a person may choose.
    """
    link = data_dir / "scratch"
    if link.is_symlink():
        abandoned = link.readlink()
        if abandoned.name.startswith(_SCRATCH_PREFIX):
            shutil.rmtree(abandoned, ignore_errors=True)
        link.unlink()
    made = Path(tempfile.mkdtemp(prefix=_SCRATCH_PREFIX))
    link.symlink_to(made, target_is_directory=True)
    return made


def api_key(data_dir: Path, database_url: str) -> str:
    """The administrator's key of this folder: the same over restarts, made anew where the database has lost it."""
    path = data_dir / _KEY_FILE
    database = Database.connect(database_url)
    try:
        kept = path.read_text(encoding="ascii").strip() if path.exists() else ""
        if kept and _is_known(database, kept):
            return kept
        made = keys.create_key(database, role=keys.Role.ADMIN).key
    finally:
        database.close()
    write_private(path, made)
    return made


def _is_known(database: Database, key: str) -> bool:
    try:
        keys.authenticate(database, f"Bearer {key}")
    except Unauthorized:
        return False
    return True


def write_private(path: Path, text: str) -> None:
    """Writes a file that only its owner may read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text + "\n")
