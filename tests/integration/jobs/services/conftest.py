"""What the tests of services share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Keeps log lines out of the way; rendering a traceback with its locals takes longer than a test."""
    with capture_logs():
        yield
