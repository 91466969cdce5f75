"""A handler that can be caught at work: it waits for as long as a file lies there, and leaves its number in it."""

from __future__ import annotations

import os
import time
from pathlib import Path

from homing import on
from jobs.core.events import Event

_LONGEST_S = 60


@on("job.succeeded", name="rescue.held")
def held(event: Event) -> None:
    """Waits where its job is the one to wait for."""
    file = Path(os.environ["RESCUE_HOLD_FILE"])
    done = file.with_name("handled")
    job = event.data["job"]
    assert isinstance(job, dict)
    give_up_at = time.monotonic() + _LONGEST_S
    while "rescue-hold" in job["metadata"] and file.exists() and time.monotonic() < give_up_at:
        file.with_name("holder").write_text(str(os.getpid()))
        time.sleep(0.02)
    with done.open("a") as lines:
        lines.write(f"{job['id']}\n")
