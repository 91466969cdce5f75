"""What a figure was measured on; without it no figure means anything."""

from __future__ import annotations

import os
import platform
import sqlite3
from importlib.metadata import version
from pathlib import Path

import psutil

from benchmarks.disk import sync_time_us
from benchmarks.load import generator_name

_PACKAGES = ("granian", "flask", "celery", "sqlalchemy", "psycopg", "redis")


def describe(folder: Path) -> dict[str, str]:
    """The machine, its disk, its load and the versions that matter."""
    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    return {
        "machine": f"{os.cpu_count()} x {_processor()}, {psutil.virtual_memory().total / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "disk": f"{sync_time_us(folder):,.0f} us per fdatasync",
        "load before": " ".join(f"{value:.1f}" for value in os.getloadavg()),
        "generator": generator_name(),
        "versions": f"{packages}, SQLite {sqlite3.sqlite_version}",
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
