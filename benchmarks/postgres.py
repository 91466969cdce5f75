"""A PostgreSQL that syncs: the suite's own is started for speed, and a benchmark of commits must not be."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg

from tests.services.postgresql import PostgresService
from tests.services.waiting import wait_until

_SETTINGS = ("max_connections=200", "shared_buffers=256MB")
_logs: dict[int, Path] = {}


def start_durable(*, settings: tuple[str, ...] = (), environ: Mapping[str, str] | None = None) -> PostgresService:
    """Takes the suite's data folder and program, and starts them again with PostgreSQL's own durability.

    Args:
        settings: Further ``name=value`` pairs.
        environ: Added to the server's environment.
    """
    service = PostgresService.start()
    command = _without_settings(list(service.process.args))  # type: ignore[arg-type] # it was started from a list
    service.process.send_signal(signal.SIGINT)
    service.process.wait(timeout=10)
    command += [part for setting in (*_SETTINGS, *settings) for part in ("-c", setting)]
    _logs[service.port] = service.folder / "postgres.log"
    with (service.folder / "postgres.log").open("ab") as log:
        service.process = subprocess.Popen(
            command,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environ or {})},
            **_owner(service),
        )
    wait_until(lambda: _answers(service), within_s=30, what="PostgreSQL answering")
    return service


def start_again(service: PostgresService) -> None:
    """Starts a server that has ended, in the same place; returns before it answers."""
    with (service.folder / "postgres.log").open("ab") as log:
        service.process = subprocess.Popen(
            service.process.args, stdout=log, stderr=subprocess.STDOUT, **_owner(service)
        )


def _without_settings(command: list[str]) -> list[str]:
    return command[: command.index("-c")]


def _owner(service: PostgresService) -> dict[str, Any]:
    if os.getuid() != 0:
        return {}
    owner = service.folder.stat()
    return {"user": owner.st_uid, "extra_groups": [], "cwd": "/"}


def _answers(service: PostgresService) -> bool:
    try:
        psycopg.connect(f"host=127.0.0.1 port={service.port} user=homing dbname=postgres connect_timeout=2").close()
    except psycopg.OperationalError:
        return False
    return True


def log_of(port: int) -> Path:
    """The log of a server that was started here."""
    return _logs[port]
