"""What tests of a PostgreSQL that fails share: a server of their own, which they may stop, freeze and cut off."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jobs.storage.migrations import upgrade
from tests.services.postgresql import PostgresService


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresService]:
    """With a migrated database ``homing``."""
    service = PostgresService.start()
    service.create("homing")
    upgrade(service.url("homing"))
    yield service
    service.stop()
