"""The disk: how fast it syncs, and a slower one where a compiler is at hand."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median

SLOWER_BY_US = 1_000
_SOURCE = Path(__file__).with_name("slow_disk.c")
_PROBES = 50


def sync_time_us(folder: Path) -> float:
    """The median time of one small write and fdatasync."""
    spans = []
    with (folder / "sync.probe").open("wb") as file:
        for _ in range(_PROBES):
            file.write(b"x" * 512)
            file.flush()
            begin = time.perf_counter()
            (os.fdatasync if hasattr(os, "fdatasync") else os.fsync)(file.fileno())
            spans.append(time.perf_counter() - begin)
    return median(spans) * 1e6


def slow_disk(folder: Path) -> Mapping[str, str] | None:
    """The environment of a process whose syncs take 1 ms longer; None where it cannot be had."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        return None
    library = folder / "slow_disk.so"
    command = [compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(_SOURCE), "-ldl"]
    if subprocess.run(command, check=False, capture_output=True).returncode != 0:
        return None
    folder.chmod(0o755)
    return {"LD_PRELOAD": str(library), "SLOW_DISK_US": str(SLOWER_BY_US)}
