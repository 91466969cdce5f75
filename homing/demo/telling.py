"""How the demo speaks while it works: to standard error, so that its result can be piped."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeAlias

from jobs.clock import Clock

#: Says one thing that happens now.
Teller: TypeAlias = Callable[[str], None]


def teller(clock: Clock) -> Teller:
    """Return a teller that puts the seconds since now before each line."""
    began_s = clock.monotonic()

    def tell(text: str) -> None:
        print(f"{clock.monotonic() - began_s:6.1f} s  {text}", file=sys.stderr, flush=True)

    return tell
