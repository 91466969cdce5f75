"""The load under fire, and what a round without one is worth."""

from __future__ import annotations

from random import Random
from threading import Event

import pytest

from jobs.core.errors import Unavailable
from tests.crashing.load import Load
from tests.crashing.rounds import must_have_worked


def test_a_database_that_is_away_ends_no_submitter() -> None:
    asked, answers = Event(), iter([True, Unavailable("down"), True])

    def is_full() -> bool:
        answer = next(answers, None)
        if answer is None:
            asked.set()
        if isinstance(answer, Exception):
            raise answer
        return True

    load = Load("http://127.0.0.1:9", "key", "test", Random(1), "http://127.0.0.1:9", is_full)
    pool = load.start()
    load.resume()

    assert asked.wait(10)
    load.stop()
    pool.shutdown()
    assert load.faults == []


@pytest.mark.parametrize(("deaths", "taken"), [(100, 0), (100, 19), (5, 0)])
def test_a_round_without_work_is_none(deaths: int, taken: int) -> None:
    with pytest.raises(AssertionError, match="the load itself has stopped"):
        must_have_worked(deaths=deaths, taken=taken)


@pytest.mark.parametrize(("deaths", "taken"), [(100, 20), (100, 300), (4, 0)])
def test_a_round_with_work_counts(deaths: int, taken: int) -> None:
    must_have_worked(deaths=deaths, taken=taken)
