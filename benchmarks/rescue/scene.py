"""A fleet by ``homing up``, its provider behind a turnstile, and how to look at its work."""

from __future__ import annotations

import itertools
import os
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import sqlalchemy as sa

from benchmarks.postgres import start_durable
from benchmarks.rescue.turnstile import HOOKS, Turnstile, turnstile
from benchmarks.signing import SECRET
from benchmarks.stage import POSTGRESQL, Stage
from homing.client.address import Address
from homing.client.api import ApiClient
from homing.demo.simulator_process import start_simulator
from homing.simulator.config import DEMO_SECRET
from homing.up.fleet import Fleet
from homing.up.options import FleetOptions
from homing.up.processes import PROCESSES
from jobs.clock import SystemClock
from jobs.config.settings import PREFIX
from jobs.core.errors import JobsError
from jobs.storage.database import Database
from jobs.storage.schema import jobs
from tests.services.postgresql import PostgresService
from tests.services.waiting import wait_until

#: Calls back; does not (its callbacks are refused, so only polls bring its jobs home); sends events alone.
CALLS, QUIET, SENDER = "calls", "quiet", "alerts"
#: A handler of ``benchmarks.rescue.plugin`` reads and writes here.
HOLD_VARIABLE = "RESCUE_HOLD_FILE"
#: Metadata of the one job whose work is to be caught.
MARK = "rescue-hold"
#: Nothing here takes so long, unless it is lost.
GIVE_UP_S = 240.0
_numbers = itertools.count(1)

_CONFIG = """\
[providers.calls]
adapter = "simulator"
base_url = "{url}"
webhook_secrets = ["{secret}"]
poll = {{ base = "5s", cap = "15s" }}

[providers.quiet]
adapter = "simulator"
base_url = "{url}"
webhook_secrets = ["{other}"]
poll = {{ base = "1s", cap = "5s" }}

[providers.alerts]
adapter = "events"
webhook_secrets = ["{other}"]

[plugins]
modules = ["benchmarks.rescue.plugin"]
"""


@dataclass(frozen=True, slots=True)
class Scene:
    """Where faults are made, and their rescue is watched."""

    fleet: Fleet
    gate: Turnstile
    database: Database
    hold_file: Path
    postgres: PostgresService | None

    def submit(self, provider: str, *, model: str = "predict", patience_s: float = GIVE_UP_S) -> str:
        """A short job, accepted; asked again under one key for as long as the API is away."""
        return self._send(provider, model, patience_s=patience_s, metadata={})

    def submit_marked(self, provider: str, *, model: str = "predict") -> str:
        """The same, told from all others by its metadata, which its events carry."""
        return self._send(provider, model, patience_s=GIVE_UP_S, metadata={MARK: "yes"})

    def _send(self, provider: str, model: str, *, patience_s: float, metadata: dict[str, str]) -> str:
        number = next(_numbers)
        inputs = {"model": model, **_INPUTS[model], "duration_s": 0.3, "seed": number}
        body = {"provider": provider, "input": inputs, "metadata": metadata}
        running, give_up_at = self.fleet.running, time.monotonic() + patience_s
        client = ApiClient(Address(running.url, running.api_key))
        while True:
            try:
                return str(client.submit(body, key=f"rescue-{number}")["id"])
            except JobsError:
                if time.monotonic() > give_up_at:
                    raise
                time.sleep(0.05)

    def pid_behind(self, port: int, name: str) -> int:
        """The process of the fleet whose connection has this port."""
        for pid in self.fleet.running.pids[name]:
            if port in {getattr(each.laddr, "port", 0) for each in psutil.Process(pid).net_connections("tcp")}:
                return pid
        raise AssertionError(f"nobody of {name} holds port {port}")

    def wait_home(self, *job_ids: str) -> None:
        """Until each has succeeded."""
        self.wait(lambda: self._states(job_ids) == {"succeeded"}, f"{len(job_ids)} jobs home")

    def wait(self, happened: Callable[[], bool], what: str) -> None:
        """Until it has; a database that is away for a moment says no."""

        def looked() -> bool:
            try:
                return happened()
            except JobsError:
                return False

        wait_until(looked, within_s=GIVE_UP_S, what=what)

    def settle(self) -> None:
        """Until every process has its children again and a job comes home as on a good day."""
        self.wait(self._is_whole, "every process at its work")
        self.wait_home(self.submit(CALLS), self.submit(QUIET))

    def _is_whole(self) -> bool:
        pids = self.fleet.running.pids
        whole = all(len(pids.get(name, ())) >= 1 + count for name, count in _CHILDREN.items())
        return whole and all(psutil.pid_exists(pid) for each in pids.values() for pid in each) and self.fleet.is_ready()

    def _states(self, job_ids: tuple[str, ...]) -> set[str]:
        with self.database.read() as tx:
            rows = tx.rows(sa.select(jobs.c.state).where(jobs.c.id.in_(job_ids)))
        return {row["state"] for row in rows}


def _children_of(command: str) -> int:
    words = shlex.split(command)
    if "threads" in words:
        return 0
    option = next((word for word in ("--workers", "--concurrency") if word in words), None)
    return int(words[words.index(option) + 1]) if option else 0


_CHILDREN = {process.name: _children_of(process.command) for process in PROCESSES}
_INPUTS: Mapping[str, Mapping[str, Any]] = {
    "predict": {"fit": {"weights": {"x": 0.4}, "bias": 12.0}, "rows": [{"x": 8}, {"x": 18}]},
    "video": {"prompt": "a bird comes home", "frames": 4},
}


@contextmanager
def scene(stage: Stage, kind: str) -> Iterator[Scene]:
    """A whole fleet on a database of its own."""
    with ExitStack() as stack:
        folder = stage.new_folder()
        postgres = None
        url = f"sqlite:///{folder / 'homing.db'}"
        if kind == POSTGRESQL:
            postgres = start_durable()
            stack.callback(postgres.stop)
            postgres.create("rescue")
            url = postgres.url("rescue")
        simulator = stack.enter_context(start_simulator([], seed=1, faults="none", folder=folder))
        gate = stack.enter_context(turnstile(simulator.url))
        fleet = stack.enter_context(Fleet.start(_options(folder, gate.url, url), clock=SystemClock()))
        assert fleet.wait_ready(within_s=120), f"the API did not come up; see {folder / 'logs'}"
        database = Database.connect(url, answer_timeout_s=3)
        stack.callback(database.close)
        made = Scene(fleet, gate, database, folder / "hold", postgres)
        body = {"url": gate.url + HOOKS, "events": ["job.succeeded"], "rate": "100/s"}
        ApiClient(Address(fleet.running.url, fleet.running.api_key)).post("/v1/endpoints", body)
        made.settle()
        yield made


def _options(folder: Path, provider_url: str, database_url: str) -> FleetOptions:
    config = folder / "homing.toml"
    config.write_text(_CONFIG.format(url=provider_url, secret=DEMO_SECRET, other=SECRET), encoding="utf-8")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    own = {
        "HOMING_DATABASE_URL": database_url,
        HOLD_VARIABLE: str(folder / "hold"),
        "PYTHONPATH": str(Path(__file__).parents[2]),  # the workers load the plugin from here
    }
    return FleetOptions(
        data_dir=folder, port=0, embedded=True, config=config, simulator=False, environ={**environ, **own}
    )
