"""Services and values every test may ask for. A service that cannot be had fails the test."""

from __future__ import annotations

import gc
import itertools
import shutil
import sqlite3
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import settings
from sqlalchemy import Pool, event
from xdist.scheduler import Scheduling

from jobs.clock import FakeClock
from jobs.storage.database import Database
from tests.services.postgresql import PostgresService
from tests.services.redis import RedisService
from tests.services.scheduling import TwoLanes, longest_first

# Two busy cores make any one example slow; the time-out of the whole test stays.
settings.register_profile("homing", deadline=None)
settings.load_profile("homing")

# The default's fancy tracebacks take seconds each; the product configures plain ones as well.
structlog.configure(
    processors=[
        structlog.processors.add_log_level,
        structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
    ]
)

_KINDS = ("unit", "integration", "contract", "e2e", "browser")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Spares the collector all that is imported and collected here: it lives as long as the process does."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks each test by the folder it lives in; several processes start with the longest."""
    for item in items:
        for kind in _KINDS:
            if kind in item.path.parts:
                item.add_marker(kind)
    if hasattr(config, "workerinput"):
        longest_first(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling | None:
    """``--dist loadfile`` knows our two kinds of tests."""
    if config.getvalue("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False  # the order is that of the collection
    return TwoLanes(config, log)


@event.listens_for(Pool, "checkout")
def _spare_the_disk(connection: Any, record: Any, _proxy: Any) -> None:
    # Only for speed, as with PostgreSQL: what these processes write need not survive a power cut.
    if isinstance(connection, sqlite3.Connection) and not record.info.get("spares the disk"):
        connection.execute("PRAGMA synchronous=OFF")
        record.info["spares the disk"] = True


@pytest.fixture(autouse=True)
def _no_settings_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer's HOMING_* must not change what a test sees."""
    import os

    for name in [name for name in os.environ if name.startswith("HOMING_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def clock() -> FakeClock:
    """Stands still at 2026-01-01T00:00:00Z until told to move."""
    return FakeClock()


@pytest.fixture(scope="session")
def redis_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisService]:
    """One real Redis for this test process. To kill one, use ``RedisService.start_in(tmp_path)``."""
    service = RedisService.start_in(tmp_path_factory.mktemp("redis"))
    yield service
    service.kill()


@pytest.fixture
def redis_url(redis_service: RedisService) -> str:
    """The address of an empty Redis."""
    redis_service.wipe()
    return redis_service.url


@pytest.fixture(scope="session")
def postgres_service() -> Iterator[PostgresService]:
    """One real PostgreSQL for this test process."""
    service = PostgresService.start()
    yield service
    service.stop()


@pytest.fixture(scope="session")
def postgres_template(postgres_service: PostgresService) -> str:
    """The name of a migrated database to clone."""
    name = "homing_template"
    postgres_service.create(name)
    _migrate(postgres_service.url(name))
    return name


def _migrate(url: str) -> None:
    # Alembic is slow to import, and unit tests have no use for it.
    from jobs.storage.migrations import upgrade

    upgrade(url)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file to copy."""
    path = tmp_path_factory.mktemp("sqlite") / "template.db"
    _migrate(f"sqlite:///{path}")
    return path


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """A migrated SQLite database of this test's own."""
    copy = shutil.copy(sqlite_template, tmp_path / "homing.db")
    return f"sqlite:///{copy}"


_numbers = itertools.count()
_spare: list[str] = []  # emptied databases of this process: cloning one takes fifty times as long


@pytest.fixture
def postgres_url(postgres_service: PostgresService, postgres_template: str) -> Iterator[str]:
    """A migrated, empty PostgreSQL database of this test's own."""
    if not _spare:
        _spare.append(f"homing_{next(_numbers)}")
        postgres_service.create(_spare[0], template=postgres_template)
    name = _spare.pop()
    yield postgres_service.url(name)
    if postgres_service.wipe(name, like=postgres_template):
        _spare.append(name)
    else:
        postgres_service.drop(name)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """A migrated database of this test's own, once on each kind."""
    fixture = "sqlite_url" if request.param == "sqlite" else "postgres_url"
    url: str = request.getfixturevalue(fixture)
    return url


@pytest.fixture
def database(database_url: str, clock: FakeClock) -> Iterator[Database]:
    """A connected, migrated database, once on each kind, reading ``clock``."""
    connected = Database.connect(database_url, clock=clock)
    yield connected
    connected.close()
