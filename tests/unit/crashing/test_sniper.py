"""Who is shot at next: where nobody has died yet."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from tests.crashing.control import Control, Trigger
from tests.crashing.sniper import Sniper


@pytest.fixture
def control(tmp_path: Path) -> Control:
    made = Control(tmp_path)
    for name in "abcdefgh":
        Trigger(tmp_path).hit(name)
    return made


def _armed(control: Control) -> set[str]:
    return {arming.point for arming in Trigger(control.folder)._armed()}


def test_points_without_a_death_come_first(control: Control) -> None:
    sniper = Sniper(control, Random(1), Counter(a=1, b=2, c=1))

    sniper.refill()

    assert _armed(control) == set("defgh")


def test_no_more_are_armed_while_some_are(control: Control) -> None:
    sniper = Sniper(control, Random(1), Counter())
    sniper.refill()
    before = _armed(control)

    sniper.refill()

    assert _armed(control) == before


def test_nobody_dies_after_the_fire_was_held(control: Control) -> None:
    sniper = Sniper(control, Random(1), Counter())
    sniper.refill()

    assert sniper.hold_fire() == []

    assert _armed(control) == set()


def test_nothing_is_armed_before_anything_was_passed(tmp_path: Path) -> None:
    Sniper(Control(tmp_path), Random(1), Counter()).refill()

    assert _armed(Control(tmp_path)) == set()
