"""Every event that whole flows make the product write is held to its schema."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jobs.core.errors import JobsError
from jobs.storage.database import Database
from tests.events import faults_in

#: Where tests invent events of their own there is nothing to hold.
_INVENT = {
    "test_poison",
    "test_redrive_kinds",
    "test_relay",
    "test_handling",
    "test_dead_letters",
    "test_ticking",
    "test_fairness",
}


@pytest.fixture(autouse=True)
def _events_keep_their_shape(request: pytest.FixtureRequest) -> Iterator[None]:
    """After each test on a database, its outbox is read."""
    if "database" not in request.fixturenames or request.path.stem in _INVENT:
        yield
        return
    database: Database = request.getfixturevalue("database")
    yield
    try:
        faults = faults_in(database)
    except JobsError:  # the test took the database away
        return
    assert faults == []
