"""When a budget begins and ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from jobs.core.spending import Per, day_of, first_day, next_turn


@pytest.mark.parametrize(
    ("at", "per", "first", "turn"),
    [
        (datetime(2026, 2, 28, 23, 59, tzinfo=UTC), Per.DAY, "2026-02-28", datetime(2026, 3, 1, tzinfo=UTC)),
        (datetime(2026, 2, 1, tzinfo=UTC), Per.DAY, "2026-02-01", datetime(2026, 2, 2, tzinfo=UTC)),
        (datetime(2026, 1, 31, 12, tzinfo=UTC), Per.MONTH, "2026-01-01", datetime(2026, 2, 1, tzinfo=UTC)),
        (datetime(2026, 12, 1, tzinfo=UTC), Per.MONTH, "2026-12-01", datetime(2027, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_budget_turns_at_midnight_utc(at: datetime, per: Per, first: str, turn: datetime) -> None:
    assert first_day(per, now=at) == first
    assert next_turn(per, now=at) == turn


def test_another_zones_evening_is_booked_on_its_utc_day() -> None:
    assert day_of(datetime(2026, 1, 1, 23, tzinfo=timezone(timedelta(hours=-5)))) == "2026-01-02"
