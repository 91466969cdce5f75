"""What a fleet will be is decided, and refused, before anything starts."""

from __future__ import annotations

import socket
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from homing.up.options import FleetOptions
from homing.up.plan import make_plan, programs
from jobs.config import loading
from jobs.core.errors import ConfigError


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _options(tmp_path: Path, environ: Mapping[str, str] | None = None, **chosen: Any) -> FleetOptions:
    given: dict[str, Any] = {"data_dir": tmp_path / "data", "port": 0, "embedded": True}
    (tmp_path / "data").mkdir(exist_ok=True)
    return FleetOptions(**given | chosen, environ=environ or {})


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_an_embedded_fleet_needs_nothing_but_a_folder(tmp_path: Path) -> None:
    plan = make_plan(_options(tmp_path))

    settings = loading.load(plan.environment)
    assert settings.settings.redis_url == plan.redis.url  # type: ignore[union-attr]
    assert settings.settings.public_url == plan.url
    assert settings.settings.allow_private_addresses
    assert settings.providers["simulator"].base_url == plan.simulator_url


def test_what_a_person_set_is_kept(tmp_path: Path) -> None:
    chosen = {
        "HOMING_PUBLIC_URL": "https://homing.example.com",
        "HOMING_FLOWER_BASIC_AUTH": "ops:a-long-password",
        "HOMING_DATABASE_URL": "sqlite:////elsewhere/homing.db",
    }

    plan = make_plan(_options(tmp_path, chosen))

    assert chosen.items() <= plan.environment.items()
    assert plan.flower_auth == "ops:a-long-password"


def test_a_provider_of_ones_own_means_no_simulator(tmp_path: Path) -> None:
    (tmp_path / "homing.toml").write_text("")

    plan = make_plan(_options(tmp_path))

    assert plan.simulator_url is None
    assert "HOMING_CONFIG" not in plan.environment


def test_the_simulator_s_secret_is_this_fleet_s_own_and_nobody_else_may_read_it(tmp_path: Path) -> None:
    first, second = make_plan(_options(tmp_path)), make_plan(_options(tmp_path))

    secret = tmp_path / "data" / "simulator_webhook_secret"
    assert first.environment["SIMULATOR_WEBHOOK_SECRET"] != second.environment["SIMULATOR_WEBHOOK_SECRET"]
    assert secret.read_text().strip() == second.environment["SIMULATOR_WEBHOOK_SECRET"]
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    (entry,) = loading.load(second.environment).providers.values()
    assert entry.webhook_secrets


def test_a_port_in_use_is_refused_with_a_way_out(tmp_path: Path, taken_port: int) -> None:
    with pytest.raises(ConfigError, match=rf"port {taken_port}: .*--port 0"):
        make_plan(_options(tmp_path, port=taken_port))


def test_faults_of_the_configuration_stop_the_fleet_before_it_starts(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="HOMING_DATABSE_URL"):
        make_plan(_options(tmp_path, {"HOMING_DATABSE_URL": "sqlite:///x.db"}))


@pytest.mark.parametrize(
    ("chosen", "says"),
    [
        ({"processes": ("webb",)}, "did you mean web"),
        ({"processes": ("redis",), "embedded": False}, "only with --embedded"),
        ({"port": 70_000}, "from 0 to 65535"),
    ],
)
def test_options_that_cannot_work_are_refused(tmp_path: Path, chosen: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        _options(tmp_path, **chosen)


def test_only_the_chosen_processes_run(tmp_path: Path) -> None:
    plan = make_plan(_options(tmp_path, processes=("web", "redis")))

    names = [program.name for program in programs(plan, metrics=tmp_path)]

    assert sorted(names) == ["redis", "web"]
    assert plan.flower_url is None


def test_everything_stands_on_redis(tmp_path: Path) -> None:
    made = programs(make_plan(_options(tmp_path)), metrics=tmp_path)

    assert [program.name for program in made if program.foundation] == ["redis"]
    names = {"web", "worker-events", "worker-io", "worker-streams", "beat", "flower", "simulator"}
    assert names < {program.name for program in made}


@pytest.mark.parametrize(("adapter", "listens"), [("openai", True), ("heygen", False)])
def test_who_listens_runs_only_where_a_provider_tells_its_output_or_somebody_asks(
    tmp_path: Path, adapter: str, listens: bool
) -> None:
    config = tmp_path / "homing.toml"
    entry = f'[providers.x]\nadapter = "{adapter}"\napi_token = "k"\n'
    config.write_text(entry + 'webhook_secrets = ["whsec_c3RyZWFtcy1vZi1hLXRlc3QtZmxlZXQ="]\n')

    chosen = [_options(tmp_path, config=config), _options(tmp_path, config=config, processes=("worker-streams",))]
    names = [{program.name for program in programs(make_plan(each), metrics=tmp_path)} for each in chosen]

    assert ["worker-streams" in each for each in names] == [listens, True]


def test_no_secret_is_on_a_command_line(tmp_path: Path) -> None:
    plan = make_plan(_options(tmp_path))
    words = [word for program in programs(plan, metrics=tmp_path) for word in program.argv]

    assert plan.redis is not None
    secrets = [plan.redis.password, plan.flower_auth.partition(":")[2], plan.environment["SIMULATOR_WEBHOOK_SECRET"]]
    assert not any(secret in word for secret in secrets for word in words)


def test_flower_is_closed_read_only_and_on_loopback(tmp_path: Path) -> None:
    plan = make_plan(_options(tmp_path))
    flower = next(program for program in programs(plan, metrics=tmp_path) if program.name == "flower")

    assert {"--address=127.0.0.1", "--read_only=True", "--max_tasks=10000"} <= set(flower.argv)
    assert flower.environment["FLOWER_BASIC_AUTH"] == plan.flower_auth
