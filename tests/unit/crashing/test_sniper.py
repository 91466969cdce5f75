"""Who is shot at next: where nobody has died yet."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from tests.crashing.control import Control, Trigger
from tests.crashing.sniper import Sniper, is_rare


@pytest.fixture
def control(tmp_path: Path) -> Control:
    made = Control(tmp_path)
    for name in "abcdefgh":
        Trigger(tmp_path).hit(name)
    return made


def _armed(control: Control) -> set[str]:
    """Points that are passed all the time."""
    return {point for point in _all_armed(control) if not is_rare(point)}


def _all_armed(control: Control) -> set[str]:
    return {arming.point for arming in Trigger(control.folder)._armed()}


def test_points_without_a_death_come_first(control: Control) -> None:
    sniper = Sniper(control, Random(1), Counter(a=1, b=2, c=1, d=1))

    sniper.refill()

    assert _armed(control) == set("efgh")


def test_no_more_are_armed_while_some_are(control: Control) -> None:
    sniper = Sniper(control, Random(1), Counter())
    sniper.refill()
    before = _armed(control)

    sniper.refill()

    assert _armed(control) == before
    assert len(_all_armed(control)) == 7


def test_nobody_dies_after_the_fire_was_held(control: Control) -> None:
    sniper = Sniper(control, Random(1), Counter())
    sniper.refill()

    assert sniper.hold_fire() == []

    assert _armed(control) == set()


def test_before_anything_was_passed_only_dead_letters_are_waited_for(tmp_path: Path) -> None:
    Sniper(Control(tmp_path), Random(1), Counter()).refill()

    armed = _all_armed(Control(tmp_path))
    assert armed
    assert all(point.endswith(" *") for point in armed)
    assert _armed(Control(tmp_path)) == set()


def test_some_places_are_always_kept_for_dead_letters(control: Control) -> None:
    Sniper(control, Random(1), Counter()).refill()

    assert sum(map(is_rare, _all_armed(control))) == 3


def test_deaths_at_dead_letters_are_told_apart() -> None:
    sniper = Sniper.__new__(Sniper)
    sniper.deaths = Counter({"letter.before x": 2, "decision.after y": 1, "write.before x": 5})

    assert sniper.deaths_at(("letter.",)) == 2
    assert sniper.deaths_at() == 3
