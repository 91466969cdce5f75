"""What the suites over vendors stand on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from jobs.clock import FakeClock
from tests.contract.asking import Open
from tests.contract.vendor_cases import Case
from tests.contract.vendor_server import Reply, Vendor, vendor


@pytest.fixture
def open_vendor(clock: FakeClock) -> Iterator[Open]:
    """Starts a server that says what it is told, and the adapter that asks it."""
    with ExitStack() as opened:

        def start(case: Case, *replies: Reply, **entry: object) -> Vendor:
            return opened.enter_context(vendor(case.adapter, clock, *replies, **{**case.entry, **entry}))

        yield start
