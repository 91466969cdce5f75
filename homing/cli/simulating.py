"""The simulator as a process: it says where it listens, and ends when it should."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable

from homing.screen import Document
from homing.simulator.config import SimulatorConfig
from homing.simulator.server import Running, serve
from jobs.core.errors import ConfigError


def serve_simulator(
    config: SimulatorConfig,
    *,
    announce: Callable[[Document], None] | None,
    say: Callable[[str], None],
    with_parent: bool,
) -> None:
    """Serve until interrupted.

    Args:
        config: what it is told.
        announce: takes the address as a document, for a program that started it; none: a person did.
        say: tells a person.
        with_parent: end when standard input closes, as it does when whoever holds its other end dies.

    Raises:
        ConfigError: the port is in use.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if with_parent:
        threading.Thread(target=_end_with_parent, name="parent-watch", daemon=True).start()

    def ready(running: Running) -> None:
        if announce is not None:
            announce({"url": running.url, "port": running.port})
        else:
            say(f"Simulator on {running.url}; its ledger: {running.url}/ledger. Ctrl-C stops it.")

    try:
        serve(config, on_ready=ready)
    except OSError as error:
        raise ConfigError(f"port {config.port} cannot be had: {error.strerror}; --port 0 takes a free one") from None
    except SystemExit:  # werkzeug's own way to say that the port is taken
        raise ConfigError(f"port {config.port} is in use; --port 0 takes a free one") from None


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGINT)
