"""The data dir a command works with, known before any configuration is read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

DEFAULT = ".homing"


def data_dir_of(environ: Mapping[str, str]) -> Path:
    """Return the folder of `HOMING_DATA_DIR`, absolute, whatever else the configuration says."""
    return Path(environ.get("HOMING_DATA_DIR") or DEFAULT).expanduser().absolute()
