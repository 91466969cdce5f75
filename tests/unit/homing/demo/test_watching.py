"""The live table's words and numbers."""

from __future__ import annotations

from collections import Counter

import pytest

from homing.demo.folder import open_folder
from homing.demo.live import describe, draw, live_table
from homing.demo.watching import Sight, faults_seen

HALF = Sight(
    wanted=4,
    elapsed_s=3.0,
    states=Counter(pending=1, running=1, succeeded=1, failed=1),
    home_by=Counter(webhook=1, poll=1),
    effects=2,
    faults={"dropped": 3},
)


def test_a_sight_counts_what_has_ended() -> None:
    assert (HALF.home, HALF.is_over) == (2, False)


@pytest.mark.parametrize(("effects", "over"), [(4, True), (3, False)])
def test_a_run_is_over_when_each_end_has_had_its_effect(effects: int, over: bool) -> None:
    assert Sight(4, 1.0, Counter(succeeded=4), effects=effects).is_over is over


def test_a_line_says_where_everything_stands() -> None:
    line = describe(HALF)

    for part in ("2/4 home", "pending 1 running 1 succeeded 1 failed 1", "webhook 1 poll 1", "effects 2", "faults 3"):
        assert part in line


def test_the_table_can_be_drawn_before_anything_has_happened() -> None:
    assert draw(Sight(0, 0.0), title="demo").row_count == 5


def test_faults_are_told_from_plain_traffic() -> None:
    ledger = {"totals": {"submits": 9, "reads": 3, "sent": 5, "refused": 1, "dropped": 2, "early": 0, "stale": 4}}

    assert faults_seen(ledger) == {"stale": 4, "dropped": 2}


def test_without_a_terminal_lines_are_told_when_something_changed() -> None:
    told: list[str] = []
    with live_table(title="demo", tell=told.append) as show:
        show(HALF)
        show(HALF)
        show(Sight(4, 3.1, Counter(succeeded=4), effects=4))

    assert len(told) == 2  # the change between the two came too soon, but it was the last one


@pytest.mark.parametrize(("keep", "stays"), [(True, True), (False, False)])
def test_a_temporary_folder_goes_when_all_went_well(keep: bool, stays: bool) -> None:
    told: list[str] = []
    with open_folder(None, tell=told.append) as folder:
        folder.keep = keep

    assert folder.path.exists() is stays
    assert bool(told) is stays
    if stays:
        folder.path.rmdir()


def test_an_interrupted_demo_leaves_no_folder() -> None:
    with pytest.raises(KeyboardInterrupt), open_folder(None, tell=lambda _text: None) as folder:
        raise KeyboardInterrupt

    assert not folder.path.exists()
