"""The simulated provider as a process of its own, which ends with the demo however that ends."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from homing.simulator.job_lines import JobLine
from jobs.core.errors import Unavailable

_READY_WITHIN_S = 30.0
_STOP_WITHIN_S = 10.0
# The ledger of hundreds of jobs is long, and the machine is busy with a whole fleet.
_ANSWER_WITHIN_S = 30.0


@dataclass(frozen=True, slots=True)
class Simulator:
    """A simulator that answers."""

    url: str

    def ledger(self) -> dict[str, Any]:
        """Everything that happened, as the provider saw it."""
        return self._get("/ledger")

    def sink(self) -> dict[str, Any]:
        """The calls the effect sink has counted."""
        return self._get("/sink")

    def _get(self, path: str) -> dict[str, Any]:
        with requests.Session() as session:
            session.trust_env = False
            document: dict[str, Any] = session.get(self.url + path, timeout=_ANSWER_WITHIN_S).json()
        return document


@contextmanager
def start_simulator(inputs: Sequence[JobLine], *, seed: int, faults: str, folder: Path) -> Iterator[Simulator]:
    """Run a simulator for as long as the block lasts.

    Args:
        inputs: the jobs to come; they are dealt the faults' full quotas. None known: each draws its own.
        seed: of the faults.
        faults: how bad a day it has.
        folder: for its plan and its log.

    Raises:
        Unavailable: it does not start; names its log.
    """
    plan = folder / "simulator-plan.jsonl"
    plan.write_text("".join(json.dumps({"input": line.input}) + "\n" for line in inputs), encoding="utf-8")
    log = folder / "simulator.log"
    command = [
        sys.executable, "-m", "homing.cli", "simulator", "--port", "0", "--with-parent", "--json",
        "--seed", str(seed), "--faults", faults, *(["--plan", str(plan)] if inputs else []),
    ]  # fmt: skip
    with (
        log.open("ab") as errors,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
        ) as process,
    ):
        try:
            yield Simulator(_address(process, log))
        finally:
            _stop(process)


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    """Wait for the line that says where it listens."""
    assert process.stdout is not None
    watchdog = threading.Timer(_READY_WITHIN_S, process.kill)
    watchdog.start()
    try:
        line = process.stdout.readline()
    finally:
        watchdog.cancel()
    try:
        url: str = json.loads(line)["url"]
    except (ValueError, KeyError):
        raise Unavailable(f"the simulator did not start; its log is {log}") from None
    return url


def _stop(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(timeout=_STOP_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
