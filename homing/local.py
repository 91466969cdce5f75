"""What commands need that work on this machine's configuration and database themselves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from homing.client.data_dir import data_dir_of
from homing.screen import say
from jobs.core.errors import ConfigError

if TYPE_CHECKING:
    from jobs.config.loading import Configuration
    from jobs.storage.database import Database


def load_configuration() -> Configuration:
    """Read the configuration of this process's environment, and show its warnings.

    Raises:
        ConfigError: every fault of it.
    """
    from jobs.config.loading import load  # noqa: PLC0415 - pydantic costs a tenth of a second

    configuration = load({**_made_up_provider(), **os.environ})
    for warning in configuration.warnings:
        say(f"homing: {warning}")
    return configuration


def _made_up_provider() -> dict[str, str]:
    """Where nobody names a provider, `homing up --embedded` makes one up; its fleet's commands know it too."""
    from homing.up import run_file  # noqa: PLC0415
    from homing.up.plan import SIMULATOR_CONFIG  # noqa: PLC0415

    folder = data_dir_of(os.environ)
    made_up = folder / SIMULATOR_CONFIG
    if Path("homing.toml").exists() or not made_up.exists() or run_file.read(folder) is None:
        return {}
    return {"HOMING_CONFIG": str(made_up)}


@contextmanager
def open_database() -> Iterator[Database]:
    """Open the configured database, at this release's schema, for as long as the block lasts.

    Raises:
        ConfigError: of the configuration, or where the schema is not this release's.
        Unavailable: it does not answer.
    """
    from jobs.clock import SystemClock  # noqa: PLC0415
    from jobs.storage.database import Database  # noqa: PLC0415

    settings = load_configuration().settings
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    database = Database.connect(settings.database_url, clock=SystemClock())
    try:
        check_schema(database)
        yield database
    finally:
        database.close()


def check_schema(database: Database) -> None:
    """Refuse a schema that is not this release's.

    Raises:
        ConfigError: says to migrate.
        Unavailable: the database does not answer.
    """
    from jobs.storage.migrations import current_version, newest_version  # noqa: PLC0415

    current, newest = current_version(database), newest_version()
    if current is None:
        raise ConfigError("the database is empty; `homing migrate` brings it to this release's schema")
    if current != newest:
        raise ConfigError(f"the database is at schema {current}, this release needs {newest}; `homing migrate`")
