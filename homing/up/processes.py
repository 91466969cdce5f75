"""What a fleet is made of: the one place that says which command runs each process.

``Procfile`` is written from here, ``docker-compose.yml`` is tested against it, and ``homing up`` runs it. Commands
hold ``{slots}`` for what differs between those places; nothing else does.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from jobs.broker import EVENT_QUEUES, IO_QUEUES, STREAM_QUEUES

#: Requests one web worker works on at a time (``homing.gate``); it shares them out by this number (``homing.web``).
WEB_THREADS = 16
#: Streams one web worker keeps open: each holds a thread that waits. The server starts threads as they are needed.
STREAM_THREADS = 400
#: Requests one web worker lets wait; beyond them the kernel's backlog holds them.
_WAITING = 240
#: Runs one worker listens to at a time: each holds two threads that wait, and no slot of any other work.
LISTENING_THREADS = 100
_CELERY = "celery -A homing.worker:app"
# Mingle and gossip are chatter between workers that nothing here reads, and more code on the reconnect path.
_QUIET = "--prefetch-multiplier 1 --without-mingle --without-gossip"
_WORKER = f"{_CELERY} worker --pool prefork {_QUIET}"
# Makes SIGTERM a soft shutdown: running tasks get their time, the others go back to the queue at once.
_SOFT_SHUTDOWN = {"REMAP_SIGTERM": "SIGQUIT"}


@dataclass(frozen=True, slots=True)
class Process:
    """One process of the fleet, with its children.

    Attributes:
        name: As in ``run.json``, the Procfile and the compose file.
        command: The command line, with ``{slots}``.
        environment: What it needs beyond the fleet's own settings; values may hold slots.
        stop_wait_s: Seconds between the polite signal and the kill.
        measures: Whether it adds to the fleet's metrics (Flower has some of its own, for itself).
        listens: It does nothing where no provider tells its output as it is made; then `homing up` leaves it out.
    """

    name: str
    command: str
    environment: Mapping[str, str] = field(default_factory=dict)
    stop_wait_s: int = 10
    measures: bool = False
    listens: bool = False

    def argv(self, slots: Mapping[str, str]) -> list[str]:
        """The command with its slots filled, split into arguments."""
        return [part.format_map(slots) for part in shlex.split(self.command)]

    def filled_environment(self, slots: Mapping[str, str]) -> dict[str, str]:
        """The environment with its slots filled."""
        return {name: value.format_map(slots) for name, value in self.environment.items()}


PROCESSES: tuple[Process, ...] = (
    Process(
        "web",
        "granian --interface wsgi --factory homing.web:create_app --host {web_host} --port {web_port} --no-ws"
        f" --workers 2 --blocking-threads {WEB_THREADS + STREAM_THREADS}"
        f" --backpressure {WEB_THREADS + STREAM_THREADS + _WAITING}"
        " --respawn-failed-workers --workers-kill-timeout 5",
        stop_wait_s=15,
        measures=True,
    ),
    Process(
        "worker-events",
        f"{_WORKER} -n events@%h -Q {','.join(EVENT_QUEUES)} --concurrency 2 --loglevel info",
        environment=_SOFT_SHUTDOWN,
        stop_wait_s=30,
        measures=True,
    ),
    Process(
        "worker-io",
        f"{_WORKER} -n io@%h -Q {','.join(IO_QUEUES)} --concurrency 8 --loglevel info",
        environment=_SOFT_SHUTDOWN,
        stop_wait_s=30,
        measures=True,
    ),
    # Threads, because it only waits. A polite signal ends it within seconds: its readings are handed over.
    Process(
        "worker-streams",
        f"{_CELERY} worker --pool threads {_QUIET} -n streams@%h -Q {','.join(STREAM_QUEUES)}"
        f" --concurrency {LISTENING_THREADS} --loglevel info",
        stop_wait_s=15,
        measures=True,
        listens=True,
    ),
    # No schedule file and no pid file: the schedule is in code, and two beats are harmless.
    Process("beat", f"{_CELERY} beat --loglevel info"),
    Process(
        "flower",
        f"{_CELERY} flower --address={{flower_host}} --port={{flower_port}} --read_only=True --max_tasks=10000"
        " --max_workers=200 --purge_offline_workers=600",
        # Through the environment, because a command line can be read by everybody on the machine.
        environment={"FLOWER_BASIC_AUTH": "{flower_basic_auth}"},
    ),
)

#: Only under ``homing up``: elsewhere Redis is a service of its own and the provider is a real one.
LOCAL_ONLY = ("redis", "simulator")

NAMES: tuple[str, ...] = tuple(process.name for process in PROCESSES) + LOCAL_ONLY

_PROCFILE_SLOTS = {
    "web_host": "${HOST:-127.0.0.1}",
    "web_port": "${PORT:-8000}",
    "flower_host": "${FLOWER_HOST:-127.0.0.1}",
    "flower_port": "${FLOWER_PORT:-5555}",
    # Flower never runs open: the shell refuses the line when the setting is missing.
    "flower_basic_auth": '"${HOMING_FLOWER_BASIC_AUTH:?is required, as user:password}"',
}


def procfile() -> str:
    """The text of the Procfile. Written by ``python -m homing.up.processes > Procfile``."""
    return "".join(f"{process.name}: {_shell_line(process)}\n" for process in PROCESSES)


def _shell_line(process: Process) -> str:
    settings = [f"{name}={value}" for name, value in process.filled_environment(_PROCFILE_SLOTS).items()]
    return " ".join([*settings, *process.argv(_PROCFILE_SLOTS)])


if __name__ == "__main__":
    print(procfile(), end="")
