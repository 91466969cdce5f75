"""A worker of its own for the test of the guard: one task that takes its time, and says when it did what."""

from __future__ import annotations

import os
import time
from pathlib import Path

from celery import Celery

from homing import celery_guard

if os.environ["GUARD"] == "yes":
    celery_guard.install()

app = Celery("guarded", broker=os.environ["BROKER"])
app.conf.update(
    task_acks_late=True,
    task_ignore_result=True,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_transport_options={"visibility_timeout": 4, "unacked_restore_interval": 1, "unacked_restore_throttle": 1},
)


@app.task(name="tell")
def tell(folder: str, word: str, hold_s: float) -> None:
    """Writes that it began, holds, writes that it ended."""
    (Path(folder) / f"{word}.began").touch()
    time.sleep(hold_s)
    (Path(folder) / f"{word}.ended").touch()
