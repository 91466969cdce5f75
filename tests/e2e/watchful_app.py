"""The worker's application with a patience of the test's own for children that are stopped."""

from __future__ import annotations

import os

from celery import signals

from homing.stopped.children import ChildWatch
from homing.stopped.watch import StoppedWatch
from homing.worker import app, child_watch

_watch = ChildWatch(StoppedWatch(every_s=0.5, patience_s=float(os.environ["TEST_PATIENCE_S"])))
signals.worker_ready.disconnect(child_watch.begin)
signals.worker_ready.connect(_watch.begin, weak=False)

__all__ = ["app"]
