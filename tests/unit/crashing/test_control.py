"""One arming kills one process, at the passage it names."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path

import pytest

from tests.crashing.control import EVERYBODY, Arming, Control, Trigger


def _pass(folder: Path, name: str, times: int) -> None:
    trigger = Trigger(folder)
    for _ in range(times):
        trigger.hit(name)
    os._exit(0)


def _status_of_child(folder: Path, name: str, times: int = 1) -> int | None:
    child = multiprocessing.get_context("spawn").Process(target=_pass, args=(folder, name, times))
    child.start()
    child.join()
    return child.exitcode


@pytest.fixture
def control(tmp_path: Path) -> Control:
    return Control(tmp_path)


def test_whoever_reaches_an_armed_point_dies_there_and_says_who_it_was(control: Control) -> None:
    arming = Arming("1", "write.before somebody:work")
    control.arm(arming)

    status = _status_of_child(control.folder, arming.point)

    struck = control.struck(arming)
    assert status == -signal.SIGKILL
    assert struck is not None
    assert (struck.point, struck.parent) == (arming.point, os.getpid())


def test_an_arming_kills_once(control: Control) -> None:
    control.arm(Arming("1", "point"))
    _status_of_child(control.folder, "point")

    assert _status_of_child(control.folder, "point", times=5) == 0


def test_another_point_and_one_that_was_taken_back_kill_nobody(control: Control) -> None:
    armed, withdrawn = Arming("1", "point"), Arming("2", "another")
    control.arm(armed)
    control.arm(withdrawn)

    assert control.disarm(withdrawn)

    assert _status_of_child(control.folder, "another") == 0
    assert control.struck(armed) is None


def test_passages_are_counted_over_all_processes(control: Control) -> None:
    control.arm(Arming("1", "point", nth=3))

    statuses = [_status_of_child(control.folder, "point") for _ in range(3)]

    assert statuses == [0, 0, -signal.SIGKILL]


def test_an_arming_that_was_claimed_cannot_be_taken_back(control: Control) -> None:
    arming = Arming("1", "point")
    control.arm(arming)
    _status_of_child(control.folder, "point")

    assert not control.disarm(arming)


def test_every_name_that_is_passed_is_in_the_census(control: Control) -> None:
    _status_of_child(control.folder, "one")
    _status_of_child(control.folder, "two", times=3)

    assert set(control.census()) == {"one", "two"}


def test_a_clock_is_wrong_in_the_one_process_it_was_set_for(control: Control) -> None:
    control.step_clock(os.getpid(), -3600)
    wrong = Trigger(control.folder).clock_offset_s()
    control.step_clock(os.getpid(), None)
    control.step_clock(1, 3600)

    assert wrong == -3600
    assert Trigger(control.folder).clock_offset_s() == 0


def test_the_clock_of_the_machine_is_everybodys(control: Control) -> None:
    control.step_clock(EVERYBODY, 25)
    control.step_clock(os.getpid(), -5)

    assert Trigger(control.folder).clock_offset_s() == 20


def test_a_beginning_stands_for_every_point_that_begins_so_and_the_dead_name_theirs(control: Control) -> None:
    arming = Arming("1", "letter.before *")
    control.arm(arming)

    untouched = _status_of_child(control.folder, "letter.after somebody:work")
    status = _status_of_child(control.folder, "letter.before somebody:work")

    struck = control.struck(arming)
    assert (untouched, status) == (0, -signal.SIGKILL)
    assert struck is not None
    assert struck.point == "letter.before somebody:work"


def test_the_plugin_does_not_load_in_production(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOMING_ENV", "production")

    with pytest.raises(RuntimeError, match="production"):
        import tests.crashing.plugin  # noqa: F401
