"""Closed-loop load on a server, from a process of its own: wrk where it is installed, else our generator."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.benchmark import Figures
from benchmarks.signing import PATH

CONNECTIONS = 32
_SCRIPT = Path(__file__).with_name("requests.lua")
#: A server of this size answers fewer; a file that runs out would turn new events into repeats.
MOST_PER_SECOND = 30_000


@dataclass(frozen=True, slots=True)
class Answered:
    """What a load came to."""

    requests: int
    seconds: float
    failed: int
    p50_ms: float
    p99_ms: float

    @property
    def figures(self) -> Figures:
        """For a table."""
        per_s = self.requests / self.seconds if self.seconds else 0.0
        return {"req/s": per_s, "p50 ms": self.p50_ms, "p99 ms": self.p99_ms, "failed": float(self.failed)}


def press(url: str, requests: Path, *, seconds: float, path: str = PATH) -> Answered:
    """Sends requests from a file over 32 connections, each as soon as the last one is answered."""
    command = _wrk(url, requests, seconds, path) or _own(url, requests, seconds, path)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Answered(**json.loads(done.stdout.splitlines()[-1]))


def generator_name() -> str:
    """What sends the load here."""
    return "wrk -t1" if shutil.which("wrk") else "benchmarks.generator (wrk is not installed; it costs more CPU)"


def _wrk(url: str, requests: Path, seconds: float, path: str) -> list[str] | None:
    program = shutil.which("wrk")
    if program is None:
        return None
    # wrk counts in whole seconds.
    options = ["-t1", f"-c{CONNECTIONS}", f"-d{max(1, round(seconds))}s", "--timeout", "10s", "-s", str(_SCRIPT)]
    return [program, *options, url, "--", str(requests), path]


def _own(url: str, requests: Path, seconds: float, path: str) -> list[str]:
    options = ["--connections", str(CONNECTIONS), "--seconds", str(seconds)]
    return [sys.executable, "-m", "benchmarks.generator", str(requests), url + path, *options]
