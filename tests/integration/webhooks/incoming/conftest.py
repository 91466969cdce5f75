"""A receiver over each database, through the fast door or through both."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jobs.clock import FakeClock
from jobs.storage.database import Database
from tests.integration.webhooks.incoming.world import DOORS, World, a_world


@pytest.fixture
def world(database: Database, clock: FakeClock) -> Iterator[World]:
    """Through the fast door."""
    built = a_world(database, clock)
    yield built
    built.intake.stop()


@pytest.fixture(params=DOORS)
def either_door(request: pytest.FixtureRequest, database: Database, clock: FakeClock) -> Iterator[World]:
    """Once through each door."""
    built = a_world(database, clock, door=request.param)
    yield built
    built.intake.stop()


@pytest.fixture(params=DOORS)
def small_door(request: pytest.FixtureRequest, sqlite_url: str, clock: FakeClock) -> Iterator[World]:
    """Once through each door, for what never reaches the database."""
    database = Database.connect(sqlite_url, clock=clock)
    built = a_world(database, clock, door=request.param)
    yield built
    built.intake.stop()
    database.close()
