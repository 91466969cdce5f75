"""A plugin whose presence makes one kind of webhook kill the process that works on it."""

from __future__ import annotations

import os
import signal
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from homing import Event, on
from webhooks.incoming.applying import batch, claims

_read_work = batch.read_work
claims.LEASE = timedelta(seconds=2)  # a test has no minutes


def _read_or_die(runtime: Any, row: Any, raw: bytes) -> Any:
    if b"poison" in raw:
        with Path(os.environ["STARTS"]).open("a", encoding="utf-8") as starts:
            starts.write(f"{time.time()}\n")
        os.kill(os.getpid(), signal.SIGKILL)
    return _read_work(runtime, row, raw)


batch.read_work = _read_or_die


@on("webhook.received", name="healthy")
def tell(event: Event) -> None:
    """Appends the event to a file."""
    with Path(os.environ["TOLD"]).open("a", encoding="utf-8") as told:
        told.write(f"{event.id}\n")
