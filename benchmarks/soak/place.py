"""Where a soak takes place: a simulator, a fleet by ``homing up``, a receiver of its deliveries."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from benchmarks.postgres import start_durable
from benchmarks.signing import SECRET
from benchmarks.soak.options import POSTGRESQL, SoakOptions
from benchmarks.soak.receiver import Receiver, receiving
from homing.demo.effects import SINK_VARIABLE
from homing.demo.simulator_process import Simulator, start_simulator
from homing.simulator.config import DEMO_SECRET
from homing.up.fleet import Fleet
from homing.up.options import FleetOptions
from jobs.clock import SystemClock
from jobs.config.settings import PREFIX
from jobs.storage.database import Database

PROVIDER, SENDER = "simulator", "alerts"
_READY_WITHIN_S = 120.0

_CONFIG = """\
[providers.{provider}]
adapter = "simulator"
base_url = "{url}"
webhook_secrets = ["{secret}"]
expected = "10s"
review_after = "10m"
deadline = "20m"
poll = {{ base = "2s", cap = "15s", overdue_cap = "15s" }}

[providers.{sender}]
adapter = "events"
webhook_secrets = ["{sender_secret}"]

[plugins]
modules = ["homing.demo.effects"]
"""


@dataclass(frozen=True, slots=True)
class Place:
    """Everything that runs."""

    simulator: Simulator
    fleet: Fleet
    database: Database
    receiver: Receiver


@contextmanager
def prepared(options: SoakOptions) -> Iterator[Place]:
    """Starts everything; ends it with the block.

    Raises:
        AssertionError: The fleet does not come up.
    """
    with ExitStack() as stack:
        folder = options.folder
        folder.mkdir(parents=True, exist_ok=True)
        url = _database_url(options, stack)
        receiver = stack.enter_context(receiving(seed=options.seed))
        simulator = stack.enter_context(start_simulator([], seed=options.seed, faults=options.faults, folder=folder))
        fleet = stack.enter_context(Fleet.start(_fleet_options(options, simulator, url), clock=SystemClock()))
        assert fleet.wait_ready(within_s=_READY_WITHIN_S), f"the API did not come up; see {folder / 'logs'}"
        database = Database.connect(url)
        stack.callback(database.close)
        yield Place(simulator, fleet, database, receiver)


def _database_url(options: SoakOptions, stack: ExitStack) -> str:
    if options.database != POSTGRESQL:
        return f"sqlite:///{options.folder / 'homing.db'}"
    service = start_durable()
    stack.callback(service.stop)
    service.create("soak")
    return service.url("soak")


def _fleet_options(options: SoakOptions, simulator: Simulator, database_url: str) -> FleetOptions:
    config = options.folder / "homing.toml"
    text = _CONFIG.format(provider=PROVIDER, url=simulator.url, secret=DEMO_SECRET, sender=SENDER, sender_secret=SECRET)
    config.write_text(text, encoding="utf-8")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    return FleetOptions(
        data_dir=options.folder,
        port=0,
        embedded=True,
        config=config,
        simulator=False,
        environ={**environ, SINK_VARIABLE: f"{simulator.url}/sink", "HOMING_DATABASE_URL": database_url},
    )
