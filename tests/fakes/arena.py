"""The real services against the real simulator over HTTP, and its webhooks into the real receiver; one fake clock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from werkzeug.serving import WSGIRequestHandler, make_server

from homing.simulator.app import create_simulator
from homing.simulator.config import DEMO_SECRET, SimulatorConfig
from homing.simulator.faults import NO_FAULTS, Faults
from homing.simulator.plan import FaultPlan, canonical_json
from homing.simulator.provider import Provider
from homing.simulator.run import Run, Status
from jobs.clock import FakeClock
from jobs.config.providers import ProviderConfig
from jobs.core.signatures import parse_secrets
from jobs.net.http import HttpClient
from jobs.providers.simulator import SimulatorProvider
from jobs.services.observe import Observer
from jobs.services.runtime import ProviderEntry
from jobs.storage.database import Database
from tests.factories import PROVIDER
from tests.fakes.runtime import a_runtime
from tests.fakes.stage import Stage
from tests.integration.webhooks.incoming.world import an_app
from webhooks.incoming.applying.drain import drain
from webhooks.incoming.installation import build_intake

INPUT = {"model": "video", "prompt": "a heron at dawn"}


class _Quiet(WSGIRequestHandler):
    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        """Says nothing."""


@dataclass
class Arena:
    """A stage whose provider is the simulator.

    Attributes:
        stage: the services, their clock and their database.
        simulator: the provider itself, to look at and to lead its runs.
    """

    stage: Stage
    simulator: Provider

    @property
    def runs(self) -> list[Run]:
        """What was billed, oldest first."""
        return self.simulator.runs.list_runs()

    def begin(self, run: Run) -> None:
        """The run begins to work, and says so."""
        self.simulator.runs.begin(run)
        self.simulator.callbacks.announce(run, Status.PROCESSING)
        drain(self.stage.runtime)

    def complete(self, run: Run) -> None:
        """Leads a run to its end, its webhooks included, and applies what came in."""
        self.simulator.life.complete_now(run)
        drain(self.stage.runtime)


@contextmanager
def an_arena(
    database: Database,
    clock: FakeClock,
    *,
    faults: Faults = NO_FAULTS,
    promises: dict[str, Any] | None = None,
    entry: dict[str, Any] | None = None,
    behind: Callable[[Any], Any] = lambda app: app,
    **simulator: Any,
) -> Iterator[Arena]:
    """An arena for as long as the block lasts.

    Args:
        database: ours.
        clock: of both sides.
        faults: of each run with :data:`INPUT`.
        promises: what our entry says of the provider, where that differs from what it does.
        entry: further settings of our entry.
        behind: puts something in front of the simulator, such as a gateway with troubles of its own.
        simulator: its flags; ``idempotency`` and ``search`` are what our entry says, too.
    """
    plan = FaultPlan(0, "none", {(canonical_json(INPUT), number): faults for number in range(5)})
    config = SimulatorConfig(**simulator)
    provider = Provider(config, clock=clock, spawn=lambda work: work(), plan=plan)
    with ExitStack() as stack:
        stack.callback(provider.close)
        provider.base_url = stack.enter_context(_served(behind(create_simulator(config, provider=provider))))
        said = {"idempotency": config.idempotency, "search": config.search, **(promises or {}), **(entry or {})}
        settings = ProviderConfig(
            adapter="simulator",
            base_url=provider.base_url,
            webhook_scheme="standard-webhooks",
            webhook_secrets=parse_secrets("standard-webhooks", [DEMO_SECRET]),
            **said,
        )
        client = HttpClient()
        stack.callback(client.close)
        ours = ProviderEntry(PROVIDER, settings, settings.policy, SimulatorProvider(settings, client, clock))
        yield Arena(_a_stage(stack, database, clock, ours), provider)


def _a_stage(stack: ExitStack, database: Database, clock: FakeClock, entry: ProviderEntry) -> Stage:
    """Our side, whose receiver listens at the public address."""
    runtime = a_runtime(database, providers={entry.name: entry})
    runtime.observer = Observer({entry.name: entry.policy}, runtime.rng)
    intake = build_intake(runtime)
    stack.callback(intake.committer.stop)
    url = stack.enter_context(_served(an_app(runtime, intake, door="hot")))
    runtime.settings = runtime.settings.model_copy(update={"public_url": url})
    return Stage(database, clock, runtime, {})


@contextmanager
def _served(app: Any) -> Iterator[str]:
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=_Quiet)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


#: The lost answer's worst case for a search: the list shows a run only after so long.
LAG = timedelta(seconds=20)
