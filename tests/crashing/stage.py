"""A fleet under test and everything around it, all of it gone when the block ends."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal, TypeAlias

import sqlalchemy as sa

from homing.client.address import Address
from homing.client.api import ApiClient
from homing.demo.options import OWN_JOBS
from homing.demo.simulator_process import Simulator, start_simulator
from homing.simulator.config import DEMO_SECRET
from homing.simulator.job_lines import read_job_lines
from homing.up.fleet import Fleet
from homing.up.options import FleetOptions
from homing.up.processes import PROCESSES as FLEET
from jobs.clock import SystemClock
from jobs.storage.database import Database
from jobs.storage.migrations import upgrade
from tests.crashing.ailments import AILMENTS, Ward
from tests.crashing.clinic import Clinic
from tests.crashing.control import SINK_VARIABLE, VARIABLE, WARD, Control
from tests.crashing.receiver import Receiver
from tests.crashing.services import WiredPostgres, WiredRedis

Kind: TypeAlias = Literal["sqlite", "postgresql"]
ENDS = ("job.succeeded", "job.failed", "job.canceled")
#: What the subscribed endpoint is told.
SUBSCRIBED = (*ENDS, "artifact.stored")
#: One simulator under several names: a "later" of the provider holds back one account, not all. Some of them wait for
#: the provider's word, others for the files.
PROVIDERS = {"one": "on_outcome", "two": "on_outcome", "three": "on_outcome", "four": "on_artifacts"}
#: All that works for a job; Redis is the harness's own, and the simulator as well.
PROCESSES = tuple(process.name for process in FLEET if process.name != "flower")
_ROOT = Path(__file__).parents[2]
_READY_WITHIN_S = 90

_CONFIG = """\
[plugins]
modules = ["tests.crashing.plugin"]
"""
_PROVIDER = """\
[providers.{name}]
adapter = "simulator"
base_url = "{url}"
webhook_secrets = ["{secret}"]
expected = "4s"
review_after = "20m"
deadline = "40m"
poll = {{ base = "1s", cap = "4s", overdue_cap = "5s" }}
finish = "{finish}"
"""


@dataclass(slots=True)
class Stage:
    """Everything of one run.

    Attributes:
        refuser: The endpoint of callbacks that ail.
        database: Past every wire, for the auditor.
    """

    kind: Kind
    folder: Path
    control: Control
    redis: WiredRedis
    postgres: WiredPostgres | None
    simulator: Simulator
    ward: Ward
    clinic: Clinic
    receiver: Receiver
    refuser: Receiver
    fleet: Fleet
    database: Database
    client: ApiClient

    @property
    def data_dir(self) -> Path:
        return self.folder / "fleet"

    def pids(self, name: str) -> list[int]:
        """The main process of that name, then its children."""
        return self.fleet.running.pids.get(name, [])


@contextmanager
def set_stage(folder: Path, kind: Kind, *, seed: int) -> Iterator[Stage]:
    """Starts everything, and ends it with the block, however that ends."""
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        control = Control(folder / "control")
        redis = WiredRedis(folder / "redis")
        stack.callback(redis.close)
        postgres = WiredPostgres() if kind == "postgresql" else None
        if postgres:
            stack.callback(postgres.close)
        ward = Ward(control.folder / WARD)
        clinic = Clinic(ward)
        stack.callback(clinic.close)
        receiver = Receiver(Random(seed))
        stack.callback(receiver.close)
        refuser = Receiver(Random(seed), refuses=lambda: ward.is_ill("ail_delivery"))
        stack.callback(refuser.close)
        simulator = stack.enter_context(
            start_simulator(read_job_lines(OWN_JOBS)[:1], seed=seed, faults="brutal", folder=folder)
        )
        url = postgres.url if postgres else f"sqlite:///{folder / 'homing.db'}"
        database = _prepare(postgres.direct_url if postgres else url)
        stack.callback(database.close)
        entries = {name: (simulator.url, finish) for name, finish in PROVIDERS.items()}
        entries |= {name: (f"{clinic.url}/{name}", "on_outcome") for name in AILMENTS}
        options = _options(folder, entries, simulator.url, control, database_url=url, redis_url=redis.url)
        fleet = stack.enter_context(Fleet.start(options, clock=SystemClock()))
        if not fleet.wait_ready(within_s=_READY_WITHIN_S):
            raise AssertionError(f"the fleet did not come up; its logs are in {folder / 'fleet' / 'logs'}")
        client = ApiClient(Address(fleet.running.url, fleet.running.api_key))
        stack.callback(client.close)
        client.post("/v1/endpoints", {"url": receiver.url, "events": list(SUBSCRIBED), "rate": "500/s"})
        yield Stage(
            kind=kind,
            folder=folder,
            control=control,
            redis=redis,
            postgres=postgres,
            simulator=simulator,
            ward=ward,
            clinic=clinic,
            receiver=receiver,
            refuser=refuser,
            fleet=fleet,
            database=database,
            client=client,
        )


def _prepare(url: str) -> Database:
    upgrade(url)
    database = Database.connect(url)
    with database.write() as tx:
        tx.execute(sa.text("CREATE TABLE crash_effects (event_id TEXT NOT NULL, job_id TEXT)"))
    return database


def _options(
    folder: Path,
    entries: Mapping[str, tuple[str, str]],
    sink_url: str,
    control: Control,
    *,
    database_url: str,
    redis_url: str,
) -> FleetOptions:
    config = folder / "homing.toml"
    config.write_text(
        _CONFIG
        + "".join(
            _PROVIDER.format(name=name, url=url, secret=DEMO_SECRET, finish=finish)
            for name, (url, finish) in entries.items()
        ),
        encoding="utf-8",
    )
    own = {name: value for name, value in os.environ.items() if not name.startswith("HOMING_")}
    return FleetOptions(
        data_dir=folder / "fleet",
        port=0,
        embedded=True,
        config=config,
        processes=PROCESSES,
        simulator=False,
        environ={
            **own,
            "PYTHONPATH": str(_ROOT),
            "HOMING_DATABASE_URL": database_url,
            "HOMING_REDIS_URL": redis_url,
            VARIABLE: str(control.folder),
            SINK_VARIABLE: f"{sink_url}/sink",
        },
    )
