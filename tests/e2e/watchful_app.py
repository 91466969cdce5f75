"""The worker's application with less patience for children that are stopped."""

from __future__ import annotations

from celery import signals

from homing.child_watch import ChildWatch
from homing.worker import app

_watch = ChildWatch(every_s=0.5, patience_s=2.0)
signals.worker_ready.connect(_watch.begin, weak=False)

__all__ = ["app"]
