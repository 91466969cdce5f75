"""Who is killed, and that nobody else ever is."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from random import Random

import pytest

from homing.demo.killing import Killer, choose_victim, deaths_for, kill, killing

FLEET = {"web": [1, 11, 12], "worker-io": [2, 21], "beat": [3], "redis": [4], "flower": [5], "simulator": [6]}


def test_each_process_that_works_for_a_job_is_chosen_sometime_and_no_other() -> None:
    rng = Random(1)

    chosen = Counter(choose_victim(FLEET, rng) for _ in range(500))

    assert {victim[0] for victim in chosen if victim} == {
        "web main", "web child", "worker-io main", "worker-io child", "beat", "redis",
    }  # fmt: skip
    assert {victim[1] for victim in chosen if victim} == {1, 11, 12, 2, 21, 3, 4}


def test_the_seed_decides_who() -> None:
    first, second = Random(7), Random(7)

    assert [choose_victim(FLEET, first) for _ in range(20)] == [choose_victim(FLEET, second) for _ in range(20)]


def test_nobody_is_chosen_of_a_fleet_that_does_not_run() -> None:
    assert choose_victim({}, Random(1)) is None
    assert choose_victim({"web": [], "flower": [5]}, Random(1)) is None


def test_a_number_that_belongs_to_somebody_else_by_now_is_spared() -> None:
    stranger = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)

    assert not kill(stranger.pid)

    assert stranger.poll() is None
    stranger.communicate()
    assert not kill(stranger.pid)


@pytest.mark.parametrize(("jobs", "deaths"), [(1, 6), (40, 10), (300, 75)])
def test_more_jobs_see_more_deaths(jobs: int, deaths: int) -> None:
    assert deaths_for(jobs) == deaths


def test_a_killer_ends_with_its_block() -> None:
    killer = Killer(lambda: {"web": [os.getpid()]}, Random(1), lambda _: None, wanted=5)

    with killing(killer):
        pass

    assert killer.killed.total() == 0  # and this process, no server of a fleet, lives
