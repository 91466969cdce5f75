"""The schema's history: one Alembic line for the tables of all packages.

The line lives with the oldest tables. It imports no other package: a migration states what the schema *was*, and a
test compares the end of the line with the metadata of all packages.
"""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from jobs.storage.database import Database


def upgrade(database_url: str) -> None:
    """Brings the schema to this release's version; does nothing where it is there already.

    Raises:
        Unavailable: The database cannot be reached.
    """
    database = Database.connect(database_url)
    try:
        with database.write() as tx:
            _lock_migrations(tx.connection)
            configuration = _configuration()
            configuration.attributes["connection"] = tx.connection
            command.upgrade(configuration, "head")
    finally:
        database.close()


def current_version(database: Database) -> str | None:
    """The version the database is at, None where it was never migrated."""
    with database.read() as tx:
        return MigrationContext.configure(tx.connection).get_current_revision()


def newest_version() -> str:
    """The version this release needs."""
    head = ScriptDirectory.from_config(_configuration()).get_current_head()
    if head is None:
        raise RuntimeError("the package has lost its migrations: install it again")
    return head


def is_usable(version: str | None) -> bool:
    """Whether this release can work on a schema.

    One it does not know is newer: during an upgrade the old processes go on while the new ones start, and a
    migration only adds.
    """
    versions = {script.revision for script in ScriptDirectory.from_config(_configuration()).walk_revisions()}
    return version is not None and (version == newest_version() or version not in versions)


def _configuration() -> Config:
    configuration = Config()
    configuration.set_main_option("script_location", str(Path(__file__).parent))
    return configuration


# Any number, as long as it is always the same: two migrators wait for each other instead of colliding.
_ADVISORY_LOCK = 4_842_665_701


def _lock_migrations(connection: sa.Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK)))
