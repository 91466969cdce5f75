"""The suite's own division of labor: what is handed to which process, and in which order."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.services.scheduling import TwoLanes, longest_first

UNIT = ["tests/unit/test_a.py::test_1", "tests/unit/test_a.py::test_2", "tests/unit/test_b.py::test_1"]
FLEETS = ["tests/e2e/test_up.py::test_1", "tests/e2e/test_up.py::test_2", "tests/e2e/test_up.py::test_3"]


@dataclass(eq=False)
class Process:
    """A test process that writes down what it is told to run."""

    name: str
    collection: list[str]
    told: list[str] = field(default_factory=list)
    shutting_down: bool = False

    @property
    def gateway(self) -> SimpleNamespace:
        return SimpleNamespace(id=self.name)

    def send_runtest_some(self, numbers: list[int]) -> None:
        self.told += [self.collection[number] for number in numbers]

    def shutdown(self) -> None:
        self.shutting_down = True


def lanes(config: pytest.Config, monkeypatch: pytest.MonkeyPatch, tests: list[str]) -> tuple[Any, Process, Process]:
    """Two processes at the start of a session."""
    monkeypatch.setattr(config.option, "tx", ["2*popen"])
    monkeypatch.setattr(config.option, "loadscopereorder", False)
    scheduler, waiting, working = TwoLanes(config), Process("gw0", tests), Process("gw1", tests)
    for process in (waiting, working):
        scheduler.add_node(process)
        scheduler.add_node_collection(process, tests)
    scheduler.schedule()
    return scheduler, waiting, working


def test_one_process_begins_with_the_fleets_and_the_other_with_the_rest(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, waiting, working = lanes(pytestconfig, monkeypatch, [*UNIT, *FLEETS])

    assert waiting.told == FLEETS
    assert working.told == UNIT[:2]


def test_whoever_is_through_with_his_own_helps_with_the_other(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = [*UNIT, *FLEETS]
    scheduler, waiting, _ = lanes(pytestconfig, monkeypatch, tests)

    scheduler.mark_test_complete(waiting, tests.index(FLEETS[0]))
    assert waiting.told == FLEETS
    scheduler.mark_test_complete(waiting, tests.index(FLEETS[1]))

    assert waiting.told == [*FLEETS, UNIT[2]]


def test_every_test_is_handed_out_once_and_its_process_then_ends(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = [f"tests/{kind}/test_{m}.py::test_{n}" for kind in ("unit", "e2e") for m in range(5) for n in range(m + 1)]
    scheduler, *processes = lanes(pytestconfig, monkeypatch, tests)
    done: list[str] = []

    while len(done) < len(tests):
        for process in processes:
            for test in process.told[:]:
                process.told.remove(test)
                done.append(test)
                scheduler.mark_test_complete(process, tests.index(test))

    assert sorted(done) == sorted(tests)
    assert scheduler.tests_finished
    assert all(process.shutting_down for process in processes)


@dataclass
class Item:
    """A test of which only its place and its time-out matter."""

    name: str
    path: Path
    timeout: float | None = None

    def get_closest_marker(self, _name: str) -> pytest.Mark | None:
        return None if self.timeout is None else pytest.mark.timeout(self.timeout).mark


def test_long_modules_come_first_and_unit_tests_last() -> None:
    items: Any = [
        Item("small", Path("tests/unit/test_a.py")),
        Item("middling", Path("tests/integration/test_a.py")),
        Item("beside the long one", Path("tests/e2e/test_b.py")),
        Item("long", Path("tests/e2e/test_b.py"), timeout=300),
        Item("longest", Path("tests/e2e/test_a.py"), timeout=900),
    ]

    longest_first(items)

    assert [item.name for item in items] == ["longest", "beside the long one", "long", "middling", "small"]
