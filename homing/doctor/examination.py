"""The examination: reads database, Redis and processes, each of which may be away, and judges what it read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from homing.doctor.database_facts import read_database
from homing.doctor.diagnosis import Finding, Level, diagnose
from homing.doctor.facts import DatabaseFacts, Facts, RedisFacts
from homing.local import check_schema
from homing.redis_probe import RedisProbe
from homing.stopped.watch import UNSEEN, is_stopped
from homing.up import run_file
from homing.up.redis_server import find_place
from jobs.broker import ALL_QUEUES
from jobs.clock import SystemClock
from jobs.config.loading import Configuration
from jobs.config.settings import Settings
from jobs.core.errors import JobsError
from jobs.storage.database import Database
from jobs.storage.places import file_of


@dataclass(frozen=True, slots=True)
class Examination:
    """Facts and findings."""

    facts: Facts
    findings: tuple[Finding, ...]

    @property
    def is_well(self) -> bool:
        """Whether nobody has to act."""
        return all(finding.level is not Level.WRONG for finding in self.findings)

    def document(self) -> dict[str, Any]:
        """Everything, for machines."""
        return {
            "well": self.is_well,
            "findings": [asdict(finding) for finding in self.findings],
            **asdict(self.facts),
        }


def examine(configuration: Configuration, environ: Mapping[str, str]) -> Examination:
    """Look at everything once."""
    settings = configuration.settings
    found, database_fault = _database(settings)
    queues, redis_fault = _redis(_redis_url(settings, environ))
    facts = Facts(
        data_dir=str(settings.data_dir),
        database=found,
        database_fault=database_fault,
        redis=queues,
        redis_fault=redis_fault,
        processes=_processes(settings.data_dir),
        stopped=_stopped(settings.data_dir),
        up_s=_up_s(settings.data_dir),
    )
    return Examination(facts, tuple(diagnose(facts)))


def _database(settings: Settings) -> tuple[DatabaseFacts | None, str]:
    file = file_of(settings.database_url)
    if file is not None and not file.exists():
        return None, f"there is none at {file}; `homing migrate` makes one"  # looking must not make one
    database = Database.connect(settings.database_url)
    try:
        check_schema(database)
        return read_database(database), ""
    except JobsError as error:
        return None, error.detail
    finally:
        database.close()


def _redis_url(settings: Settings, environ: Mapping[str, str]) -> str:
    """The configured Redis, else the one a fleet brought with it."""
    place = None if environ.get("HOMING_REDIS_URL") else find_place(settings.data_dir / "redis")
    return settings.redis_url if place is None else place.url


def _redis(url: str) -> tuple[RedisFacts | None, str]:
    probe = RedisProbe(url)
    if fault := probe.fault():
        return None, fault
    names = sorted(ALL_QUEUES)
    return RedisFacts(probe.depths(names), sum(probe.unacked(names).values())), ""


def _processes(data_dir: Path) -> dict[str, bool] | None:
    running = run_file.read(data_dir)
    if running is None:
        return None
    return {name: bool(pids) and psutil.pid_exists(pids[0]) for name, pids in running.pids.items()}


def _stopped(data_dir: Path) -> dict[str, tuple[int, ...]]:
    running = run_file.read(data_dir)
    mains = {name: pids[0] for name, pids in (running.pids.items() if running else ()) if pids}
    found = {name: tuple(filter(is_stopped, _family(pid))) for name, pid in mains.items()}
    return {name: pids for name, pids in found.items() if pids}


def _family(pid: int) -> list[int]:
    """A process and all that came of it, as they are now: children come and go, and the file does not say."""
    try:
        return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    except UNSEEN:
        return []


def _up_s(data_dir: Path) -> float | None:
    """The age of the process that has run for longest."""
    running = run_file.read(data_dir)
    began = [at for pids in (running.pids.values() if running else ()) for at in map(_began_at, pids[:1]) if at]
    return max(0.0, SystemClock().now().timestamp() - min(began)) if began else None


def _began_at(pid: int) -> float | None:
    try:
        return psutil.Process(pid).create_time()
    except psutil.Error:
        return None
