"""A plugin whose handler takes longer than the visibility time-out of the test that loads it."""

from __future__ import annotations

import os
import time
from pathlib import Path

from homing import Event, on


@on("webhook.received", name="slow")
def slow(event: Event) -> None:
    """Takes its time between saying that it begins and that it has ended."""
    with Path(os.environ["STARTS"]).open("a", encoding="utf-8") as starts:
        starts.write(f"{event.id}\n")
    time.sleep(float(os.environ["SLOW_S"]))
    with Path(os.environ["TOLD"]).open("a", encoding="utf-8") as told:
        told.write(f"{event.id}\n")
