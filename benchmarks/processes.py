"""Real processes with the shipped command lines: the server, the workers, beat."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from homing.up.ports import free_port
from homing.up.processes import PROCESSES
from tests.services.waiting import wait_until

PRODUCT = "homing.web:create_app"
_START_S = 120
_SLOTS = {"web_host": "127.0.0.1", "web_port": "", "flower_host": "", "flower_port": "", "flower_basic_auth": ""}


@dataclass(frozen=True, slots=True)
class Running:
    """A process that was started here, with its children."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def stop(self) -> None:
        """Politely, then not."""
        children = self._children()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for child in children:
            if child.is_running():
                child.kill()

    def resident_mib(self) -> dict[str, float]:
        """The memory of the process and of each child, in MiB, by name and number."""
        family = [psutil.Process(self.process.pid), *self._children()]
        return {f"{self.name}[{number}]": member.memory_info().rss / 2**20 for number, member in enumerate(family)}

    def cpu_s(self) -> float:
        """The processor time of the process and its children so far: what a busy machine changes least."""
        spans = [member.cpu_times() for member in (psutil.Process(self.process.pid), *self._children())]
        return sum(span.user + span.system for span in spans)

    def _children(self) -> list[psutil.Process]:
        try:
            return sorted(psutil.Process(self.process.pid).children(recursive=True), key=lambda child: child.pid)
        except psutil.NoSuchProcess:
            return []


def start_server(factory: str, environ: Mapping[str, str]) -> tuple[Running, str]:
    """Starts it without waiting; returns it and its address."""
    port = free_port()
    running = start("web", environ, {"web_port": str(port)}, instead_of={PRODUCT: factory})
    return running, f"http://127.0.0.1:{port}"


def wait_for_server(running: Running, url: str) -> None:
    """Until every worker of it answers, as far as can be told from outside."""
    port = int(url.rpartition(":")[2])
    wait_until(lambda: _answers(running, port), within_s=_START_S, what=f"the server ({running.log})")


def start(
    name: str,
    environ: Mapping[str, str],
    slots: Mapping[str, str] | None = None,
    *,
    instead_of: Mapping[str, str] | None = None,
) -> Running:
    """Starts a process of the fleet by its shipped command line.

    Args:
        name: As in ``homing up``.
        environ: Its whole environment.
        slots: What the command leaves open.
        instead_of: Words of the command to replace.
    """
    process = next(process for process in PROCESSES if process.name == name)
    words = process.argv({**_SLOTS, **(slots or {})})
    command = [(instead_of or {}).get(word, word) for word in words]
    return start_command(name, command, {**environ, **process.filled_environment(_SLOTS)})


def start_command(name: str, command: list[str], environ: Mapping[str, str]) -> Running:
    """Starts any command, with a log of its own."""
    log = Path(environ["HOMING_DATA_DIR"]) / f"{name}.log"
    with log.open("ab") as file:
        process = subprocess.Popen(command, env={**environ}, stdout=file, stderr=subprocess.STDOUT, cwd=_root())
    return Running(name, process, log)


def wait_for_log(running: Running, words: str) -> None:
    """Until a process has said something."""
    wait_until(
        lambda: words in running.log.read_text(errors="replace"),
        within_s=_START_S,
        what=f"{words!r} in {running.log}",
    )


def _root() -> str:
    return str(Path(__file__).parent.parent)


def _answers(running: Running, port: int) -> bool:
    if running.process.poll() is not None:
        raise AssertionError(f"the server ended:\n{running.log.read_text(errors='replace')[-2000:]}")
    if running.log.read_text(errors="replace").count("Started worker-") < 2:
        return False
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
