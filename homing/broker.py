"""The bell over Celery and Redis: bounded in time, silent when it fails.

A web thread rings after its commit, so neither an answer nor a webhook's acknowledgement depends on Redis: a refused
connection costs milliseconds, a frozen server about a second for the first two callers, and then nothing for 5 s at
a time while the breaker is open. The rows are committed; the sweeps find them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

import redis
import structlog
from celery import Celery

from homing.breaker import Breaker
from homing.celery_app import HomingTask, create_app
from homing.once import LOOKS, mark
from homing.redis_urls import connect
from jobs.clock import SystemClock

_SOCKET_TIMEOUT_S = 0.5  # a publish is at most two commands that wait for it
_FAILURES = 2
_OPEN_S = 5.0
# More than the threads of a web process: nobody waits for a connection that somebody else is stuck on.
_POOL_SIZE = 32
_POOL_WAIT_S = 0.25
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Bell:
    """What one process rings with; connections are not shared over a fork."""

    pid: int
    app: Celery[HomingTask]
    breaker: Breaker
    marks: redis.Redis


class CeleryBroker:
    """Rings bells. Threads share one; after a fork each process has connections of its own."""

    def __init__(self, redis_url: str, *, monotonic: Callable[[], float] | None = None) -> None:
        """Connects to nothing yet.

        Args:
            redis_url: As in ``HOMING_REDIS_URL``.
            monotonic: For the breaker; the machine's clock where absent.
        """
        self._redis_url = redis_url
        self._monotonic = monotonic or SystemClock().monotonic
        self._bell = self._cast()

    def publish(self, name: str, *args: str) -> bool:
        """Sends one message; False where it could not be sent. Of those that only say "look", one at a time.

        Args:
            name: The task.
            args: Ids and tokens.
        """
        bell = self._own_bell()
        if not bell.breaker.allows():
            return False
        try:
            if name not in LOOKS or mark(bell.marks, name):
                bell.app.send_task(name, args=args, retry=False)
        except Exception as error:  # noqa: BLE001 - redis, kombu and the socket each raise their own; no bell is worth a request
            if bell.breaker.failed():
                _log.warning("messages are held back", reason=f"{type(error).__name__}: {error}", for_s=_OPEN_S)
            return False
        bell.breaker.succeeded()
        return True

    def close(self) -> None:
        """Closes this process's connections."""
        bell = self._own_bell()
        bell.app.close()
        bell.marks.close()

    def _own_bell(self) -> _Bell:
        if self._bell.pid != os.getpid():
            self._bell = self._cast()
        return self._bell

    def _cast(self) -> _Bell:
        app = create_app(self._redis_url, socket_timeout_s=_SOCKET_TIMEOUT_S)
        app.conf.update(
            broker_pool_limit=_POOL_SIZE,
            broker_pool_acquire_timeout=_POOL_WAIT_S,
            # One command less for each message; Flower learns of it when a worker receives it.
            task_send_sent_event=False,
        )
        breaker = Breaker(failures=_FAILURES, open_s=_OPEN_S, monotonic=self._monotonic)
        return _Bell(os.getpid(), app, breaker, connect(self._redis_url, timeout_s=_SOCKET_TIMEOUT_S))
