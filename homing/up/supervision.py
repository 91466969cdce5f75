"""Keeping processes alive with supervisor: its configuration, and how it is started.

Why supervisor: it restarts what dies without end, stops in order, and rotates logs; honcho stops the whole fleet
when one process ends. ``startsecs=0`` makes every start count, so that restarts are unlimited and about a second
apart: Redis away for an hour, or a worker that exits whenever Redis goes, is a normal day.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from homing.up import run_file

SUPERVISOR = "supervisor"
_LAUNCH = Path(__file__).with_name("launch.py")
_LOG_BYTES = "10MB"


@dataclass(frozen=True, slots=True)
class Program:
    """One command to keep alive.

    Attributes:
        name: Names its log and its pid file.
        argv: The command.
        environment: Settings beyond those of the runner.
        stop_wait_s: Seconds between SIGTERM to it and SIGKILL to its whole process group.
        foundation: Others stand on it: started first, stopped when they have stopped.
    """

    name: str
    argv: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    stop_wait_s: int = 10
    foundation: bool = False


@dataclass(frozen=True, slots=True)
class Scratch:
    """The folder of one run: orders, pid files, supervisor's own files. Private, and gone afterwards."""

    folder: Path

    def pid_file(self, name: str) -> Path:
        """Where a program's process id stands while it runs."""
        return self.folder / f"{name}.pid"

    @property
    def config(self) -> Path:
        """Supervisor's configuration."""
        return self.folder / "supervisord.conf"

    @property
    def logs(self) -> Path:
        """A link to the folder of the logs, so that no character of its path can upset the configuration."""
        return self.folder / "logs"


def prepare(programs: Sequence[Program], scratch: Scratch, *, logs: Path) -> list[str]:
    """Writes everything supervisor needs.

    Args:
        programs: What to keep alive.
        scratch: The run's folder; exists and is private.
        logs: Where ``<name>.log`` go; kept after the run.

    Returns:
        The command that runs supervisor in the foreground, tied to this process.
    """
    logs.mkdir(parents=True, exist_ok=True)
    scratch.logs.symlink_to(logs.resolve(), target_is_directory=True)
    scratch.config.write_text("\n".join(_sections(programs, scratch)), encoding="utf-8")
    for program in programs:
        _write_orders(program, scratch)
    supervisor = [sys.executable, "-m", "supervisor.supervisord", "--nodaemon", "-c", str(scratch.config)]
    itself = Program(SUPERVISOR, supervisor)
    _write_orders(itself, scratch)
    return _launched(itself, scratch)


def end_group(pid_file: Path) -> None:
    """Kills what a program left behind: children of a main process that died a moment ago, or would not stop."""
    pid = run_file.pid_in(pid_file)
    try:
        if pid is not None:
            os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass  # nobody is left


def _sections(programs: Sequence[Program], scratch: Scratch) -> list[str]:
    others = [program.name for program in programs if not program.foundation]
    sections = [_section("supervisord", _supervisor_settings(scratch))]
    sections += [_section(f"program:{program.name}", _settings(program, scratch)) for program in programs]
    if others:  # one group, so that its members are told to stop at the same time
        sections.append(_section("group:homing", {"programs": ",".join(others), "priority": "900"}))
    return sections


def _supervisor_settings(scratch: Scratch) -> dict[str, str]:
    settings = {
        "logfile": f"{scratch.logs}/{SUPERVISOR}.log",
        "logfile_maxbytes": _LOG_BYTES,
        "logfile_backups": "1",
        "pidfile": f"{scratch.folder}/supervisord.pid",
        "childlogdir": str(scratch.folder),
    }
    if os.getuid() == 0:
        settings["user"] = "root"  # keeps the rights it was given; saying so is all it asks for
    return settings


def _settings(program: Program, scratch: Scratch) -> dict[str, str]:
    return {
        "command": shlex.join(_launched(program, scratch)).replace("%", "%%"),
        "priority": "1" if program.foundation else "900",
        "autorestart": "true",
        "startsecs": "0",
        "stopsignal": "TERM",
        "killasgroup": "true",
        "stopwaitsecs": str(program.stop_wait_s),
        "redirect_stderr": "true",
        "stdout_logfile": f"{scratch.logs}/{program.name}.log",
        "stdout_logfile_maxbytes": _LOG_BYTES,
        "stdout_logfile_backups": "1",
    }


def _section(title: str, settings: Mapping[str, str]) -> str:
    return "\n".join([f"[{title}]", *(f"{name}={value}" for name, value in settings.items()), ""])


def _launched(program: Program, scratch: Scratch) -> list[str]:
    return [sys.executable, "-I", "-S", str(_LAUNCH), str(scratch.folder / f"{program.name}.json")]


def _write_orders(program: Program, scratch: Scratch) -> None:
    orders = {
        "argv": list(program.argv),
        "environment": dict(program.environment),
        "pid_file": str(scratch.pid_file(program.name)),
    }
    path = scratch.folder / f"{program.name}.json"
    path.touch(mode=0o600)
    path.write_text(json.dumps(orders), encoding="utf-8")
