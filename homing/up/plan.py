"""What one run of the fleet will be: addresses, settings, programs. Decided once, kept over every restart."""

from __future__ import annotations

import base64
import socket
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from homing.up import processes
from homing.up.folder import write_private
from homing.up.options import FleetOptions
from homing.up.ports import free_port
from homing.up.processes import Process
from homing.up.redis_server import RedisPlace, find_redis, redis_command
from homing.up.supervision import Program
from jobs.config import loading
from jobs.core.errors import ConfigError
from jobs.ids import new_token
from jobs.providers.registry import listens

_LOOPBACK = "127.0.0.1"
_FLOWER_USER = "homing"
#: The provider that is made up where nobody names one; commands beside the fleet read it too.
SIMULATOR_CONFIG = "simulator.toml"
# Read by `homing simulator`; the file named below says the same to everybody else.
_SIMULATOR_SIGNS_WITH = "SIMULATOR_WEBHOOK_SECRET"
_SIMULATED_PROVIDER = """\
# Written by `homing up --embedded`, because no TOML file names a provider. Copy it to homing.toml to begin your own.
[providers.simulator]
adapter = "simulator"
base_url = "{simulator_url}"
webhook_secrets = [{{ file = "simulator_webhook_secret" }}]
expected = "10s"
"""


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """Everything about one run that is known before its first process starts.

    Attributes:
        options: What was asked for.
        data_dir: Absolute.
        url: Of the API.
        flower_url: Where Flower will listen, where it runs.
        flower_auth: ``user:password``.
        simulator_url: Where the simulator will listen, where it runs.
        redis: The Redis to start, where one is embedded.
        environment: The settings every process is given.
        listens: Whether any provider tells its output as it is made.
    """

    options: FleetOptions
    data_dir: Path
    url: str
    flower_url: str | None
    flower_auth: str = field(repr=False)
    simulator_url: str | None
    redis: RedisPlace | None
    environment: Mapping[str, str] = field(repr=False)
    listens: bool = True

    @property
    def logs(self) -> Path:
        """One ``<name>.log`` for each process."""
        return self.data_dir / "logs"


def make_plan(options: FleetOptions) -> FleetPlan:
    """Chooses ports, secrets and settings, and checks the whole configuration with them.

    Raises:
        ConfigError: Every fault of settings and TOML file; a port in use; a Redis that cannot be had.
    """
    data_dir = options.folder
    port = _web_port(options.port)
    redis = RedisPlace(data_dir / "redis", free_port(), new_token()) if _embeds_redis(options) else None
    environment = dict(_environment(options, data_dir, port, redis))
    simulator_url = _simulator_url(options, environment)
    if simulator_url is not None and options.simulator is None:
        environment |= _simulated_provider(data_dir, simulator_url)
    configuration = loading.load(environment)
    return FleetPlan(
        options=options,
        data_dir=data_dir,
        url=f"http://{_LOOPBACK}:{port}",
        flower_url=f"http://{_LOOPBACK}:{free_port()}" if options.wants("flower") else None,
        flower_auth=environment["HOMING_FLOWER_BASIC_AUTH"],
        simulator_url=simulator_url,
        redis=redis,
        environment=environment,
        listens=any(map(listens, configuration.providers.values())),
    )


def programs(plan: FleetPlan, *, metrics: Path) -> list[Program]:
    """The programs to keep alive, ready for supervisor.

    Args:
        plan: What to run.
        metrics: A folder where the processes add up what they measure; exists, and is empty.
    """
    slots = _slots(plan)
    chosen = [process for process in processes.PROCESSES if _runs(process, plan)]
    return [*_local_programs(plan), *(_program(process, plan, slots, metrics=metrics) for process in chosen)]


def _runs(process: Process, plan: FleetPlan) -> bool:
    is_named = process.name in plan.options.processes
    return is_named or (plan.options.wants(process.name) and (plan.listens or not process.listens))


def _program(process: Process, plan: FleetPlan, slots: Mapping[str, str], *, metrics: Path) -> Program:
    own = process.filled_environment(slots)
    if process.measures:
        own["PROMETHEUS_MULTIPROC_DIR"] = str(metrics)
    environment = {**plan.environment, **own}
    return Program(process.name, process.argv(slots), environment, stop_wait_s=process.stop_wait_s)


def _slots(plan: FleetPlan) -> dict[str, str]:
    return {
        "web_host": _LOOPBACK,
        "web_port": _port_of(plan.url),
        "flower_host": _LOOPBACK,
        "flower_port": _port_of(plan.flower_url or ""),
        "flower_basic_auth": plan.flower_auth,
    }


def _local_programs(plan: FleetPlan) -> Iterator[Program]:
    if plan.redis is not None:
        yield Program("redis", redis_command(find_redis(), plan.redis), foundation=True)
    if plan.simulator_url is not None:
        port = _port_of(plan.simulator_url)
        command = ["homing", "simulator", "--port", port, *plan.options.simulator_arguments]
        yield Program("simulator", command, plan.environment)


def _environment(
    options: FleetOptions, data_dir: Path, port: int, redis: RedisPlace | None
) -> Iterator[tuple[str, str]]:
    yield from options.environ.items()
    # The console scripts of this installation come first, also where its folder is not on PATH.
    yield "PATH", f"{Path(sys.executable).parent}:{options.environ.get('PATH', '')}"
    yield "HOMING_DATA_DIR", str(data_dir)
    if redis is not None:
        yield "HOMING_REDIS_URL", redis.url
    if options.embedded:
        yield "HOMING_ALLOW_PRIVATE_ADDRESSES", "true"
    if options.config is not None:
        yield "HOMING_CONFIG", str(options.config.expanduser().absolute())
    if not options.environ.get("HOMING_PUBLIC_URL"):
        yield "HOMING_PUBLIC_URL", f"http://{_LOOPBACK}:{port}"
    if not options.environ.get("HOMING_FLOWER_BASIC_AUTH"):
        yield "HOMING_FLOWER_BASIC_AUTH", f"{_FLOWER_USER}:{new_token()}"


def _embeds_redis(options: FleetOptions) -> bool:
    return options.embedded and options.wants("redis")


def _simulator_url(options: FleetOptions, environment: Mapping[str, str]) -> str | None:
    if not _wants_simulator(options, environment):
        return None
    return f"http://{_LOOPBACK}:{options.simulator_port or free_port()}"


def _wants_simulator(options: FleetOptions, environment: Mapping[str, str]) -> bool:
    if not options.embedded or not options.wants("simulator"):
        return False
    if options.simulator is not None:
        return options.simulator
    return not environment.get("HOMING_CONFIG") and not Path("homing.toml").exists()


def _simulated_provider(data_dir: Path, simulator_url: str) -> dict[str, str]:
    """Writes a TOML file with one provider, and returns the settings that join it to the simulator."""
    secret = "whsec_" + base64.b64encode(new_token().encode()).decode()
    write_private(data_dir / "simulator_webhook_secret", secret)
    path = data_dir / SIMULATOR_CONFIG
    path.write_text(_SIMULATED_PROVIDER.format(simulator_url=simulator_url), encoding="utf-8")
    return {"HOMING_CONFIG": str(path), _SIMULATOR_SIGNS_WITH: secret}


def _web_port(port: int) -> int:
    if port == 0:
        return free_port()
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does: a port in TIME_WAIT is free
        try:
            probe.bind((_LOOPBACK, port))
        except OSError as error:
            reason = error.strerror or "not available"
            raise ConfigError(f"port {port}: {reason.lower()}; --port 0 picks a free one") from None
    return port


def _port_of(url: str) -> str:
    return url.rpartition(":")[2]
