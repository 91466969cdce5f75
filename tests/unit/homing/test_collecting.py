"""A process that works in batches does not spend its time looking for garbage, and still finds it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from homing.collecting import collect_seldom


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


class Knot:
    """Something that holds itself."""

    def __init__(self) -> None:
        self.itself = self


def test_what_is_loaded_is_left_out_and_a_batch_starts_no_search() -> None:
    collect_seldom()

    assert gc.get_freeze_count() > 10_000
    assert gc.get_threshold()[0] >= 20_000


def test_a_cycle_made_later_is_still_found() -> None:
    collect_seldom()
    knot = weakref.ref(Knot())

    gc.collect()

    assert knot() is None
