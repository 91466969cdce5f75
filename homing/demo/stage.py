"""What the demo plays on: a folder, a simulated provider, a fleet; all gone when the block ends."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from homing.client.address import Address
from homing.client.api import ApiClient
from homing.demo.effects import SINK_VARIABLE
from homing.demo.options import DemoOptions
from homing.demo.simulator_process import Simulator, start_simulator
from homing.demo.telling import Teller
from homing.simulator.config import DEMO_SECRET
from homing.simulator.job_lines import JobLine
from homing.up.fleet import Fleet
from homing.up.options import FleetOptions
from jobs.clock import Clock
from jobs.config.settings import PREFIX
from jobs.core.errors import Unavailable
from jobs.storage.database import Database

PROVIDER = "simulator"
_READY_WITHIN_S = 60.0

_CONFIG = """\
[providers.{name}]
adapter = "simulator"
base_url = "{url}"
webhook_secrets = ["{secret}"]
expected = "20s"
review_after = "3m"
deadline = "10m"
poll = {{ base = "2s", cap = "10s", overdue_cap = "10s" }}

[plugins]
modules = ["homing.demo.effects"]
"""


@dataclass(frozen=True, slots=True)
class Stage:
    """A fleet that runs against a simulator.

    Attributes:
        folder: the fleet's data dir.
        fleet: what runs the jobs.
        client: of its API.
        database: read only, for the live table and the proof.
    """

    folder: Path
    simulator: Simulator
    fleet: Fleet
    client: ApiClient
    database: Database


@contextmanager
def set_stage(
    options: DemoOptions, inputs: Sequence[JobLine], *, folder: Path, tell: Teller, clock: Clock
) -> Iterator[Stage]:
    """Start everything, and end it again with the block, also when it fails or is interrupted.

    Raises:
        ConfigError: something the fleet needs is missing; says what to install.
        Unavailable: a process does not come up; names its log.
    """
    tell("starting the provider simulator")
    with start_simulator(inputs, seed=options.seed, faults=options.faults, folder=folder) as simulator:
        tell("starting the fleet: Redis, web, workers, beat, Flower")
        with Fleet.start(_fleet_options(folder, simulator), clock=clock) as fleet:
            if not fleet.wait_ready(within_s=_READY_WITHIN_S):
                raise Unavailable(f"the API did not come up; its log is {folder / 'logs' / 'web.log'}")
            client = ApiClient(Address(fleet.running.url, fleet.running.api_key))
            database = Database.connect(f"sqlite:///{folder / 'homing.db'}")
            try:
                yield Stage(folder, simulator, fleet, client, database)
            finally:
                database.close()
                client.close()
                tell("stopping the fleet")


def _fleet_options(folder: Path, simulator: Simulator) -> FleetOptions:
    config = folder / "homing.toml"
    text = _CONFIG.format(name=PROVIDER, url=simulator.url, secret=DEMO_SECRET)
    config.write_text(text, encoding="utf-8")
    # The settings of whoever tries the demo are for their own fleet: none of them may reach this one.
    environ = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    return FleetOptions(
        data_dir=folder,
        port=0,
        embedded=True,
        config=config,
        simulator=False,
        environ={**environ, SINK_VARIABLE: f"{simulator.url}/sink"},
    )
