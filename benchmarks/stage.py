"""The services of one run, each started when it is first asked for, and put away at the end."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path

from benchmarks import signing
from benchmarks.disk import slow_disk
from benchmarks.postgres import start_durable
from benchmarks.scale import Scale
from jobs.storage.migrations import upgrade
from tests.services.postgresql import PostgresService
from tests.services.redis import RedisService

SQLITE, POSTGRESQL = "SQLite", "PostgreSQL"
KINDS = (SQLITE, POSTGRESQL)
_TEMPLATE = "homing_template"
_CONFIG = """\
[providers.{name}]
adapter = "simulator"
base_url = "http://127.0.0.1:9"
webhook_secrets = [{{ env = "BENCH_SECRET" }}]
concurrency = 1000000
"""


class Stage:
    """One folder, one Redis, up to two PostgreSQL servers, any number of databases."""

    def __init__(self, scale: Scale) -> None:
        self.scale = scale
        self.folder = Path(tempfile.mkdtemp(prefix="homing-bench-"))
        self.remarks: list[str] = []
        self._stack = ExitStack()
        self._stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self._numbers = itertools.count(1)

    def close(self) -> None:
        """Ends every service."""
        self._stack.close()

    @cached_property
    def redis(self) -> RedisService:
        """A Redis of this run's own, durable as the shipped one."""
        service = RedisService.start_in(self.new_folder())
        self._stack.callback(service.kill)
        return service

    @cached_property
    def slow_disk(self) -> Mapping[str, str] | None:
        """The environment in which a sync takes 1 ms longer."""
        environ = slow_disk(self.new_folder())
        if environ is None:
            self.remarks.append("no C compiler (or not Linux): nothing was measured at +1 ms per sync")
        else:
            self.folder.chmod(0o755)
        return environ

    def database_url(self, kind: str, *, slow: bool = False) -> str:
        """A migrated, empty database."""
        if kind == SQLITE:
            return f"sqlite:///{shutil.copy(self._sqlite_template, self.new_folder() / 'homing.db')}"
        service = self._slow_postgres if slow else self._postgres
        name = f"bench_{next(self._numbers)}"
        service.create(name, template=_TEMPLATE)
        return service.url(name)

    def environ(self, database_url: str, *, redis_url: str | None = None) -> dict[str, str]:
        """The settings of Homing's processes, and the machine's own variables without any of Homing's."""
        folder = self.new_folder()
        config = folder / "homing.toml"
        config.write_text(_CONFIG.format(name=signing.PROVIDER), encoding="utf-8")
        machine = {name: value for name, value in os.environ.items() if not name.startswith("HOMING_")}
        return {
            **machine,
            "PATH": f"{Path(sys.executable).parent}:{machine.get('PATH', '')}",
            "HOMING_DATABASE_URL": database_url,
            "HOMING_REDIS_URL": redis_url or self.redis.url,
            "HOMING_DATA_DIR": str(folder),
            "HOMING_CONFIG": str(config),
            "HOMING_PUBLIC_URL": "http://127.0.0.1:8080",
            "HOMING_ALLOW_PRIVATE_ADDRESSES": "true",
            "BENCH_SECRET": signing.SECRET,
        }

    def new_folder(self) -> Path:
        """An empty folder."""
        folder = self.folder / str(next(self._numbers))
        folder.mkdir()
        return folder

    def own_postgres(self, *settings: str) -> str:
        """An empty, migrated database on a server of its own, with further settings."""
        return self._migrated(start_durable(settings=settings)).url(_TEMPLATE)

    @cached_property
    def _sqlite_template(self) -> Path:
        path = self.new_folder() / "template.db"
        upgrade(f"sqlite:///{path}")
        return path

    @cached_property
    def _postgres(self) -> PostgresService:
        return self._migrated(start_durable())

    @cached_property
    def _slow_postgres(self) -> PostgresService:
        return self._migrated(start_durable(environ=self.slow_disk))

    def _migrated(self, service: PostgresService) -> PostgresService:
        self._stack.callback(service.stop)
        service.create(_TEMPLATE)
        upgrade(service.url(_TEMPLATE))
        return service
