"""How much a pace leaves of a second."""

from __future__ import annotations

from datetime import timedelta

from jobs.services.accounts import pacing
from tests.factories import T

SECOND = timedelta(seconds=1)
PACED = {"pace_per_s": 20, "pace_until": T + pacing.SPAN, "pace_second": T, "pace_taken": 15}


def test_what_was_taken_in_a_second_is_not_there_twice() -> None:
    assert pacing.find_room(PACED, now=T, limit=200) == 5
    assert pacing.find_room(PACED, now=T + SECOND, limit=200) == 20
    assert pacing.find_room(PACED, now=T + pacing.SPAN, limit=200) == 200


def test_where_too_much_was_taken_nothing_is_left() -> None:
    """A claim that saw no pace is counted in the second in which another has set one; less than nothing cuts a list."""
    assert pacing.find_room({**PACED, "pace_taken": 120}, now=T, limit=200) == 0
