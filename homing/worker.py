"""The Celery application of workers, beat and Flower: ``celery -A homing.worker:app …``.

The main process of a worker opens no database: each child builds its own parts after the fork. Only where the pool is
of threads the main process does the work, and has the parts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import redis
import structlog
from celery import signals
from celery.concurrency import get_implementation

from homing import celery_guard
from homing.celery_app import create_app, task_modules
from homing.collecting import collect_seldom
from homing.composition import build_runtime, exiting_on_bad_configuration, load_handlers
from homing.once import LOOKS, unmark
from homing.redis_urls import connect
from homing.stopped.children import ChildWatch
from jobs.config.loading import Configuration, load
from jobs.services.output.reading import hand_over
from jobs.services.runtime import Runtime
from jobs.telemetry import configure_logging
from reconciler import ticking
from reconciler.lock import RedisLockStore
from reconciler.registry import build_sweeps
from reconciler.ticking import Reconciler
from reconciler.watchdog import Watchdog
from webhooks.incoming import sweep_inbox
from webhooks.outgoing.rounds import look_for_work

# Nobody waits for a worker's write as a provider waits for its answer, so it may queue for longer than a web process.
_WRITE_PATIENCE_S = 10.0

_log = structlog.get_logger(__name__)


def read_configuration(environ: Mapping[str, str]) -> Configuration:
    """The configuration, or the end of the process."""
    with exiting_on_bad_configuration():
        return load(environ)


def try_plugins(**_: Any) -> None:
    """Before the first fork: a plugin that cannot be imported ends the worker, not child after child."""
    with exiting_on_bad_configuration():
        load_handlers(_configuration)


def build_reconciler(runtime: Runtime) -> Reconciler:
    """The sweeps of this process, and the locks they share with the others."""
    locks = RedisLockStore(connect(runtime.settings.redis_url))
    return Reconciler(runtime, locks, build_sweeps(apply_inbox=sweep_inbox, send_deliveries=look_for_work))


class Child:
    """What one child of a worker runs on; its main process has none of it."""

    def __init__(self) -> None:
        self._watchdog: Watchdog | None = None
        self._runtime: Runtime | None = None

    def start(self, **_: Any) -> None:
        """After the fork: the parts, the sweeps, the watch."""
        with exiting_on_bad_configuration():
            runtime = build_runtime(_configuration, write_timeout_s=_WRITE_PATIENCE_S)
        collect_seldom()
        ticking.install(build_reconciler(runtime))
        self._runtime = runtime
        self._watchdog = Watchdog(runtime.database, broker=runtime.broker)
        self._watchdog.start()

    @property
    def redis(self) -> redis.Redis | None:
        """For marks and flags; none before the start."""
        return None if self._runtime is None else self._runtime.redis

    def stop(self, **_: Any) -> None:
        """Before the end: connections are closed, not left for the database to find out."""
        if self._watchdog is not None:
            self._watchdog.stop()
        if self._runtime is not None:
            self._runtime.database.close()


def _is_threaded(worker: Any) -> bool:
    return get_implementation(worker.pool_cls).__module__ == "celery.concurrency.thread"


def start_in_threads(sender: Any, **_: Any) -> None:
    """A pool of threads forks no child: the main process is the one that works."""
    if _is_threaded(sender):
        _child.start()


def stop_in_threads(sender: Any, **_: Any) -> None:
    """The same, at its end."""
    if _is_threaded(sender):
        _child.stop()


def begin_to_look(sender: Any, **_: Any) -> None:
    """Before a task that takes all there is: whatever is committed from now on rings anew."""
    client = _child.redis
    if sender.name in LOOKS and client is not None:
        unmark(client, sender.name)


def log_failure(task_id: str, exception: BaseException, sender: Any = None, **_: Any) -> None:
    """A task failed, or its worker was lost (told in the main process, at a hard time limit even twice).

    Nothing is written here: tries are counted on the row before the work starts, so whoever claims it next knows.
    """
    _log.error("task failed", task=getattr(sender, "name", None), task_id=task_id, error=repr(exception))


def log_unknown(name: str, id: str, **_: Any) -> None:  # noqa: A002 - the signal's own name
    """A message for a task of another release was thrown away; its row is found by a sweep."""
    _log.error("unknown task", task=name, task_id=id)


def log_rejected(message: Any, exc: BaseException, **_: Any) -> None:
    """A message that no worker may read (another serializer, not ours) was thrown away."""
    _log.error("message rejected", error=repr(exc), content_type=getattr(message, "content_type", None))


_configuration = read_configuration(os.environ)
_child = Child()
child_watch = ChildWatch()
signals.worker_init.connect(try_plugins, weak=False)
signals.worker_process_init.connect(_child.start, weak=False)
signals.worker_ready.connect(child_watch.begin, weak=False)
signals.worker_process_shutdown.connect(_child.stop, weak=False)
signals.worker_init.connect(start_in_threads, weak=False)
signals.worker_shutdown.connect(stop_in_threads, weak=False)
signals.worker_shutting_down.connect(lambda **_: hand_over(), weak=False, dispatch_uid="homing.hand_over")
signals.task_prerun.connect(begin_to_look, weak=False)
signals.task_failure.connect(log_failure, weak=False)
signals.task_unknown.connect(log_unknown, weak=False)
signals.task_rejected.connect(log_rejected, weak=False)

# With a receiver, Celery leaves logging alone; ours has one form for its lines and ours.
signals.setup_logging.connect(
    lambda **_: configure_logging(production=_configuration.settings.is_production),
    weak=False,
    dispatch_uid="homing.logging",
)
celery_guard.install()
app = create_app(_configuration.settings.redis_url, include=task_modules(), is_current=True)
