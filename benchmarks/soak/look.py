"""One look at everything that could grow."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import redis
import requests
import sqlalchemy as sa

from benchmarks.soak.options import SoakOptions
from benchmarks.soak.place import Place
from homing.redis_probe import RedisProbe
from homing.up.redis_server import find_place
from jobs.broker import EVENT_QUEUES, IO_QUEUES
from jobs.core.states import OPEN
from jobs.storage.database import Transaction
from jobs.storage.metadata import metadata

Sample = dict[str, Any]

_WAITING = {
    "open jobs": "SELECT count(*) FROM jobs WHERE state IN ('pending', 'running')",
    "leased jobs": "SELECT count(*) FROM jobs WHERE lease_token IS NOT NULL AND state IN ('pending', 'running')",
    "webhooks to apply": "SELECT count(*) FROM inbox_events WHERE next_try_at IS NOT NULL",
    "events to relay": "SELECT count(*) FROM outbox WHERE relayed_at IS NULL",
    "handler runs": "SELECT count(*) FROM handler_runs WHERE next_try_at IS NOT NULL",
    "deliveries": "SELECT count(*) FROM deliveries WHERE next_try_at IS NOT NULL",
    "dead letters": "SELECT count(*) FROM dead_letters WHERE redriven_at IS NULL",
    "reviews": "SELECT count(*) FROM jobs WHERE review_reason IS NOT NULL",
}
assert set(OPEN) == {"pending", "running"}


class Looker:
    """Takes samples of one place."""

    def __init__(self, options: SoakOptions, place: Place) -> None:
        found = find_place(options.folder / "redis")
        assert found is not None, "the embedded Redis has left no configuration"
        self._options, self._place = options, place
        self._redis = redis.Redis.from_url(found.url)
        self._probe = RedisProbe(found.url)
        self._began = time.monotonic()

    def look(self) -> Sample:
        """Everything, by name; counts and MiB."""
        with self._place.database.read() as tx:
            rows = {name: _number(tx, f'SELECT count(*) FROM "{name}"') for name in sorted(metadata.tables)}
            waiting = {name: _number(tx, query) for name, query in _WAITING.items()}
            output = _number(tx, "SELECT coalesce(sum(length(text)), 0) FROM job_output")
            size = self._database_mib(tx)
        return {
            "at_s": round(time.monotonic() - self._began, 1),
            "processes": self._processes(),
            "rows": rows,
            "output": output,
            "waiting": waiting,
            "oldest_s": self._oldest(),
            "disk": size | _folder_mib(self._options.folder),
            "redis": self._redis_facts(),
            "queues": self._probe.depths([*EVENT_QUEUES, *IO_QUEUES]),
            "load": psutil.getloadavg()[0],
        }

    def _processes(self) -> dict[str, dict[str, float]]:
        pids: Mapping[str, list[int]] = self._place.fleet.running.pids
        return {name: _weigh(numbers) for name, numbers in pids.items()}

    def _oldest(self) -> dict[str, float]:
        try:
            health = requests.get(f"{self._place.fleet.running.url}/fleetz", timeout=10).json()
        except (requests.RequestException, ValueError):
            return {}
        return {name: age for name, age in health.get("oldest", {}).items() if age is not None}

    def _redis_facts(self) -> dict[str, float]:
        try:
            memory, clients = self._redis.info("memory"), self._redis.info("clients")
            return {
                "used MiB": memory["used_memory"] / 2**20,
                "rss MiB": memory["used_memory_rss"] / 2**20,
                "keys": float(self._redis.dbsize()),
                "clients": float(clients["connected_clients"]),
            }
        except redis.RedisError:
            return {}

    def _database_mib(self, tx: Transaction) -> dict[str, float]:
        if not tx.is_sqlite:
            return {"database MiB": _number(tx, "SELECT pg_database_size(current_database())") / 2**20}
        path = self._options.folder / "homing.db"
        return {"database MiB": _mib(path), "WAL MiB": _mib(path.with_name("homing.db-wal"))}


def _number(tx: Transaction, query: str) -> int:
    return int(tx.execute(sa.text(query)).scalar_one())


def _weigh(pids: list[int]) -> dict[str, float]:
    """A process and its children together. A child that is forked late inherits what its parent has open by then: only
    what it has opened itself is counted beside its parent's."""
    totals = {"count": 0.0, "RSS MiB": 0.0, "PSS MiB": 0.0, "threads": 0.0}
    opened = {pid: _open_files(pid) for pid in pids}
    own: list[str] = []
    for pid in pids:
        try:
            process = psutil.Process(pid)
            inherited = opened.get(process.ppid(), {})
            for name, value in _weigh_one(process).items():
                totals[name] += value
        except psutil.Error:
            continue  # it ended between the two looks
        own += [name for number, name in opened[pid].items() if inherited.get(number) != name]
    return {**totals, "files": float(len(own)), "sockets": float(sum(name.startswith("socket:") for name in own))}


def _weigh_one(process: psutil.Process) -> dict[str, float]:
    memory = process.memory_full_info()
    return {
        "count": 1.0,
        "RSS MiB": memory.rss / 2**20,
        # Shared pages counted once over all processes; where the system does not tell, the resident ones.
        "PSS MiB": getattr(memory, "pss", memory.rss) / 2**20,
        "threads": float(process.num_threads()),
    }


def _open_files(pid: int) -> dict[str, str]:
    """What a process has open, by the descriptor's number; nothing where it has ended, or the system does not tell."""
    names = {}
    try:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            try:
                names[link.name] = str(link.readlink())
            except OSError:
                continue  # closed by now
    except OSError:
        pass
    return {number: name for number, name in names.items() if not name.startswith("anon_inode:")}


def _mib(path: Path) -> float:
    return path.stat().st_size / 2**20 if path.exists() else 0.0


def _folder_mib(folder: Path) -> dict[str, float]:
    return {
        f"{name} MiB": sum(_mib(path) for path in (folder / name).rglob("*") if path.is_file())
        for name in ("redis", "logs", "artifacts")
    }
