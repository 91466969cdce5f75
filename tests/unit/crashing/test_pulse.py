"""Deaths wait while the fleet gets nothing done, and do not wait for ever."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jobs.storage.database import Database
from tests.crashing import pulse
from tests.crashing.pulse import Pulse


@pytest.fixture
def database(sqlite_url: str) -> Iterator[Database]:
    made = Database.connect(sqlite_url)
    yield made
    made.close()


class Hands:
    """Of a clock that is moved by hand."""

    now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch) -> Hands:
    made = Hands()
    monkeypatch.setattr(pulse, "time", made)
    return made


@pytest.mark.parametrize(("later_s", "is_stalled"), [(3, False), (10, True), (44, True), (47, False)])
def test_a_fleet_that_moves_nothing_is_stalled_for_a_while(
    database: Database, hands: Hands, later_s: float, is_stalled: bool
) -> None:
    watched = Pulse(database, _moved_at_s=hands.now_s)
    watched.is_stalled()

    hands.now_s += later_s

    assert watched.is_stalled() is is_stalled
