"""A place where events are sent: a real database, a stand-in for the network, and a clock that stands still."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from jobs.clock import FakeClock
from jobs.storage.database import Database
from tests.integration.webhooks.outgoing.world import World


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Keeps log lines out of the way."""
    with capture_logs():
        yield


@pytest.fixture
def world(database: Database, clock: FakeClock, tmp_path: Path) -> World:
    return World.over(database, clock, data_dir=tmp_path)
