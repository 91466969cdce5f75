"""The Celery application and its settings, each with its reason.

Celery carries bells, nothing more: ids, no payloads, no results, no long waits. What a lost, doubled or late message
would break is kept by rows, leases and sweeps; these settings only make such days rare and short.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from typing import Any

from celery import Celery, Task

import jobs.tasks
from homing.redis_urls import celery_address
from jobs.broker import QUEUES
from reconciler.schedule import beat_schedule

KEY_PREFIX = "homing:"  # of every key Celery writes, so that a shared Redis stays tidy
_WORKER_SOCKET_TIMEOUT_S = 5.0


class HomingTask(Task):  # type: ignore[type-arg] # celery-types makes it generic, celery itself does not
    """A task whose worker was killed is sent again this often, this soon, and no more."""

    max_retries = 3
    default_retry_delay = 3


def create_app(
    redis_url: str,
    *,
    socket_timeout_s: float = _WORKER_SOCKET_TIMEOUT_S,
    include: tuple[str, ...] = (),
    is_current: bool = False,
) -> Celery[HomingTask]:
    """A Celery application; connects to nothing yet.

    Args:
        redis_url: As in ``HOMING_REDIS_URL``.
        socket_timeout_s: Bounds every command that is answered at once; waiting for messages is not affected.
        include: Modules of tasks, for a worker.
        is_current: Whether it is the process's own, which ``shared_task`` and the command line use.
    """
    app = Celery("homing", task_cls=HomingTask, include=list(include), set_as_current=is_current)
    app.conf.update(_settings(redis_url, socket_timeout_s))
    return app


def task_modules() -> tuple[str, ...]:
    """Every module that holds tasks."""
    return tuple(_task_modules())


def _task_modules() -> Iterator[str]:
    for module in pkgutil.iter_modules(jobs.tasks.__path__):
        yield f"jobs.tasks.{module.name}"
    yield "webhooks.incoming.tasks"
    yield "webhooks.outgoing.tasks"
    yield "reconciler.tasks"


def _settings(redis_url: str, socket_timeout_s: float) -> dict[str, Any]:
    address = celery_address(redis_url)
    return {
        "broker_url": address.broker_url,
        "broker_use_ssl": address.use_ssl,
        "broker_transport_options": {**_transport(socket_timeout_s), **address.transport_options},
        **_MESSAGES,
        **_CONNECTIONS,
        **_WORKERS,
        "task_routes": {task: {"queue": queue} for task, queue in QUEUES.items()},
        "beat_schedule": beat_schedule(),
    }


_MESSAGES: dict[str, Any] = {
    # The database is the truth; results would be a second one, with leaks of its own.
    "result_backend": None,
    "task_ignore_result": True,
    # No pickle, whoever can write to Redis.
    "task_serializer": "json",
    "accept_content": ["json"],
    # A message lives until its work is done …
    "task_acks_late": True,
    # … and also when the child that did it is killed; late acks alone would lose it. Bounded, unlike a reject,
    # which a task that kills its worker turns into a hot loop.
    "task_retry_on_worker_lost": True,
    "task_time_limit": 60,
    "task_soft_time_limit": 50,
    "task_default_queue": "events",
    "timezone": "UTC",
    "enable_utc": True,
    # For Flower.
    "worker_send_task_events": True,
    "task_send_sent_event": True,
}

_CONNECTIONS: dict[str, Any] = {
    "task_publish_retry_policy": {
        "max_retries": 1,
        "interval_start": 0,
        "interval_step": 0.1,
        "interval_max": 0.2,
    },
    "broker_pool_acquire_timeout": 1.0,  # without it a frozen Redis piles threads up for ever
    "broker_connection_retry_on_startup": True,
    "broker_connection_max_retries": None,  # outlives any outage
    # Killing a task in the middle of a submit makes its outcome unknown; a second run in parallel only finds the
    # lease taken.
    "worker_cancel_long_running_tasks_on_connection_loss": False,
}

_WORKERS: dict[str, Any] = {
    "worker_prefetch_multiplier": 1,  # nothing hoarded behind a slow task
    "worker_max_tasks_per_child": 1000,
    "worker_max_memory_per_child": 300_000,  # KiB
    "worker_eta_task_limit": 200,
    "worker_soft_shutdown_timeout": 20,
    # A child that is not up by then is killed. The default of 4 s kills each one anew for as long as the machine is so
    # busy that a start takes five: then no work is done at all, by a worker that lives.
    "worker_proc_alive_timeout": 60,
    # Our schedule is code: nothing to store, and no file to be found corrupt.
    "beat_scheduler": "homing.ticker:Ticker",
}


def _transport(socket_timeout_s: float) -> dict[str, Any]:
    return {
        # Longer than the hard time limit and the longest countdown together. Work that may take longer (handlers)
        # holds a renewed lease in the database, and the copy that is redelivered finds it.
        "visibility_timeout": 180,
        # The defaults look for lost messages every hundred seconds.
        "unacked_restore_interval": 5,
        "unacked_restore_throttle": 1,
        "socket_timeout": socket_timeout_s,
        "socket_connect_timeout": 1,
        # A half-open connection is noticed within about 21 s.
        "socket_keepalive": True,
        "health_check_interval": 10,
        # The publisher's own reconnecting.
        "max_retries": 1,
        "interval_start": 0,
        "interval_step": 0.1,
        "interval_max": 0.2,
        "connect_retries_timeout": 2,
        "global_keyprefix": KEY_PREFIX,
    }
