"""Serves the simulator over HTTP, one thread per connection."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from homing.simulator.app import create_simulator
from homing.simulator.config import SimulatorConfig
from homing.simulator.plan import FaultPlan
from homing.simulator.provider import Provider
from jobs.core.errors import ConfigError

# Connections that wait to be taken up: a fleet that starts again comes back all at once.
_BACKLOG = 256


class _Handler(WSGIRequestHandler):
    """Quiet, and without the 40 ms that small answers wait for an acknowledgement on kept connections."""

    disable_nagle_algorithm = True

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """The ledger is the log."""


@dataclass(frozen=True, slots=True)
class Running:
    """A simulator that answers."""

    url: str
    port: int
    provider: Provider


def serve(config: SimulatorConfig, *, on_ready: Callable[[Running], None] | None = None) -> None:
    """Serve until interrupted.

    Args:
        config: what it is told; port 0 takes a free one.
        on_ready: called once it listens, with the address it got.

    Raises:
        ConfigError: the address cannot be had.
    """
    provider, server, running = _open(config, None)
    try:
        if on_ready is not None:
            on_ready(running)
        server.serve_forever()
    finally:
        server.server_close()
        provider.close()


@contextmanager
def running(config: SimulatorConfig, *, plan: FaultPlan | None = None) -> Iterator[Running]:
    """Serve from a thread of this process for as long as the block lasts.

    Args:
        config: what it is told; port 0 takes a free one.
        plan: faults chosen by hand, instead of the configured ones.
    """
    provider, server, now_running = _open(config, plan)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield now_running
    finally:
        provider.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()
        provider.close()


def _open(config: SimulatorConfig, plan: FaultPlan | None) -> tuple[Provider, BaseWSGIServer, Running]:
    with _listen(config) as listener:
        provider = Provider(config, plan=plan)
        app = create_simulator(config, provider=provider)
        server = make_server(
            config.host, config.port, app, threaded=True, request_handler=_Handler, fd=listener.fileno()
        )
    host = f"[{config.host}]" if ":" in config.host else config.host
    url = f"http://{host}:{server.port}"
    provider.base_url = (config.public_url or url).rstrip("/")
    provider.start()
    return provider, server, Running(url, server.port, provider)


def _listen(config: SimulatorConfig) -> socket.socket:
    """A socket of our own: where it cannot be had, the server would print to the screen and end the process."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    try:
        return socket.create_server((config.host, config.port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise ConfigError(f"cannot listen on {config.host}:{config.port}: {error.strerror or error}") from error
