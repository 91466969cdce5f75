"""A whole fleet, started by its command as a person would, for the tests that need one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import requests

from homing.up import run_file
from tests.services.waiting import wait_until

_READY_WITHIN_S = 60


class FleetProcess:
    """``homing up --embedded`` in a folder of its own."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.data_dir = folder / "data"
        command = [str(Path(sys.executable).with_name("homing")), "up", "--embedded", "--port", "0", "--json"]
        self._errors = folder / "up.stderr"
        with self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [*command, "--data-dir", str(self.data_dir), *arguments],
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=folder,
                env=_without_settings(os.environ),
            )

    def wait_ready(self) -> dict[str, Any]:
        """Reads the line that says the fleet is ready."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the fleet did not start:\n{self._errors.read_text()}\n{self.logs()}"
        ready: dict[str, Any] = json.loads(line)
        wait_until(self._answers, within_s=_READY_WITHIN_S, what="the API")
        return ready

    @property
    def running(self) -> run_file.Running:
        running = run_file.read(self.data_dir)
        assert running is not None, "there is no run.json"
        return running

    def pids(self, name: str) -> list[int]:
        return self.running.pids.get(name, [])

    def every_pid(self) -> list[int]:
        return [self.process.pid, *(pid for pids in self.running.pids.values() for pid in pids)]

    def call(self, method: str, path: str, **arguments: Any) -> requests.Response:
        running = self.running
        headers = {"Authorization": f"Bearer {running.api_key}", **arguments.pop("headers", {})}
        return requests.request(method, running.url + path, headers=headers, timeout=10, **arguments)

    def logs(self) -> str:
        """The end of each log, for a failure's message."""
        files = sorted((self.data_dir / "logs").glob("*.log"))
        return "\n".join(f"== {file.name}\n{file.read_text(errors='replace')[-1500:]}" for file in files)

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(timeout=60)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return status

    def _answers(self) -> bool:
        try:
            return requests.get(self.running.url + "/readyz", timeout=1).ok
        except requests.RequestException:
            return False


def are_gone(pids: list[int]) -> bool:
    return not any(map(_lives, pids))


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _without_settings(environ: os._Environ[str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if not name.startswith("HOMING_")}
