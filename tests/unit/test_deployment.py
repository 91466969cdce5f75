"""Procfile, compose file and `homing up` start the same fleet, and the compose file is one."""

from __future__ import annotations

import importlib.resources
import json
import shlex
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from homing.up import processes
from homing.up.processes import PROCESSES, Process
from jobs.broker import QUEUES

_TOP = Path(__file__).parents[2]
_COMPOSE_SLOTS = {
    "web_host": "0.0.0.0",
    "web_port": "8000",
    "flower_host": "0.0.0.0",
    "flower_port": "5555",
    "flower_basic_auth": "${HOMING_FLOWER_BASIC_AUTH:?is required, as user:password}",
}


@pytest.fixture(scope="module")
def compose() -> Any:
    return yaml.safe_load((_TOP / "docker-compose.yml").read_text())


def test_the_procfile_is_what_processes_says() -> None:
    """Write it anew: `python -m homing.up.processes > Procfile`."""
    assert (_TOP / "Procfile").read_text() == processes.procfile()


def test_the_compose_file_keeps_to_the_compose_specification(compose: Any) -> None:
    vendored = importlib.resources.files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json"
    schema = json.loads(vendored.read_text(encoding="utf-8"))

    jsonschema.validators.validator_for(schema)(schema).validate(compose)


@pytest.mark.parametrize("process", PROCESSES, ids=lambda process: process.name)
def test_compose_runs_each_process_as_processes_says(compose: Any, process: Process) -> None:
    service = compose["services"][process.name]

    assert shlex.split(service["command"]) == process.argv(_COMPOSE_SLOTS)
    assert process.filled_environment(_COMPOSE_SLOTS).items() <= service["environment"].items()


def test_compose_has_the_fleet_its_services_and_nothing_else(compose: Any) -> None:
    fleet = {process.name for process in PROCESSES}

    assert set(compose["services"]) == fleet | {"postgres", "redis", "migrate"}


def test_every_lasting_service_is_restarted_and_watched(compose: Any) -> None:
    lasting = {name: service for name, service in compose["services"].items() if name != "migrate"}

    assert {service["restart"] for service in lasting.values()} == {"unless-stopped"}
    assert all(service["healthcheck"]["test"] for service in lasting.values())


def test_redis_keeps_its_queues_over_crashes_and_under_pressure(compose: Any) -> None:
    command = " ".join(compose["services"]["redis"]["command"])

    assert "--appendonly yes" in command
    assert "--maxmemory-policy noeviction" in command


def test_no_secret_stands_in_the_compose_file(compose: Any) -> None:
    settings = [setting for service in compose["services"].values() for setting in service["environment"].items()]
    secrets = [
        value for name, value in settings if any(word in name for word in ("PASSWORD", "SECRET", "AUTH", "_URL"))
    ]

    assert secrets
    assert all(":?" in value for value in secrets), "each is required from the environment"


def test_flower_is_published_on_loopback_only(compose: Any) -> None:
    assert compose["services"]["flower"]["ports"] == ["127.0.0.1:5555:5555"]


def test_processes_start_after_the_schema_and_get_their_time_to_stop(compose: Any) -> None:
    for process in PROCESSES:
        service = compose["services"][process.name]
        assert service["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
        grace_s = int(service.get("stop_grace_period", "10s").removesuffix("s"))
        assert grace_s >= process.stop_wait_s


def test_every_queue_is_consumed_by_one_process() -> None:
    words = [shlex.split(process.command) for process in PROCESSES if " worker " in process.command]
    queues = [queue for line in words for queue in line[line.index("-Q") + 1].split(",")]

    assert sorted(queues) == sorted(set(QUEUES.values()))
