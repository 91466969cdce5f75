"""How often Python looks for garbage in a process that works in batches or answers many requests."""

from __future__ import annotations

import gc

# A batch makes thousands of objects that all die by themselves. By default each 700 of them start a search, which in
# time goes through the whole heap: an eighth of the drain's time, and every so often a tenth of a second in which no
# request is answered. Cycles are still found, later.
_YOUNG = 20_000


def collect_seldom() -> None:
    """Leaves what a process has loaded out of every search, and searches less often. Called after any fork."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, *gc.get_threshold()[1:])
