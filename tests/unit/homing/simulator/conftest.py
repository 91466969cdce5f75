"""The simulator's fixtures: who receives its webhooks, and a stage with time at the test's command."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from homing.simulator import FaultPlan, SimulatorConfig, create_simulator
from homing.simulator.provider import Provider
from jobs.clock import FakeClock
from tests.unit.homing.simulator.stage import Received, Receiver, Stage


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    kept = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = kept.take(Received({k.lower(): v for k, v in self.headers.items()}, body))
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    kept.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield kept
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def build_stage(receiver: Receiver) -> Iterator[Callable[..., Stage]]:
    built: list[Provider] = []

    def build(*, fault_plan: FaultPlan | None = None, listen: bool = True, **settings: Any) -> Stage:
        clock, config = FakeClock(), SimulatorConfig(**settings)
        provider = Provider(config, clock=clock, spawn=lambda work: work(), plan=fault_plan)
        built.append(provider)
        app = create_simulator(config, provider=provider)
        app.testing = True  # a cut connection comes up as the exception it is
        return Stage(provider, app.test_client(), clock, receiver.url if listen else None)

    yield build
    for provider in built:
        provider.close()


@pytest.fixture
def stage(build_stage: Callable[..., Stage]) -> Stage:
    """A simulator without faults."""
    return build_stage()
