"""Waiting for something outside this process, with an end."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(happened: Callable[[], bool], *, within_s: float, what: str, every_s: float = 0.02) -> None:
    """Asks again and again until the answer is yes.

    Raises:
        AssertionError: It did not happen in time; names what was waited for.
    """
    give_up_at = time.monotonic() + within_s
    while not happened():
        if time.monotonic() > give_up_at:
            raise AssertionError(f"{what} did not happen within {within_s:g} s")
        time.sleep(every_s)
