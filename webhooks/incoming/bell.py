"""The bell: wakes a worker after a commit, once per burst, and never makes a receiver wait.

It may lose every ring: the sweep finds what is due. A frozen Redis stalls the bell's own thread and nobody else.

Redis keys: ``homing:inbox:ringing`` is set from a ring until the drain it announces begins, 5 s at most.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from datetime import timedelta

import redis
import structlog

from jobs.broker import DRAIN, Broker

FLAG = "homing:inbox:ringing"
#: A ring whose message was lost is forgotten after this long, and the next commit rings again.
_FLAG_S = 5
#: After a failure Redis is left alone for so long; meanwhile the sweep is the bell.
_REST = timedelta(seconds=5)
#: A ring is followed by a pause of so many times its own length: under load every commit asks for one.
_PAUSES_PER_RING = 9
_LONGEST_PAUSE_S = 0.05

_log = structlog.get_logger(__name__)


class RingFlag:
    """Whether a ring is on its way, shared by all processes."""

    def __init__(self, client: redis.Redis | None) -> None:
        """Takes a client with short time-outs and no retries; without one every ring is sent."""
        self._redis = client

    def put_up(self) -> bool:
        """Sets the flag; False where it was set already.

        Raises:
            redis.RedisError: Redis cannot be asked.
        """
        return self._redis is None or bool(self._redis.set(FLAG, 1, nx=True, ex=_FLAG_S))

    def take_down(self) -> bool:
        """Deletes the flag, so that whatever is committed from now on rings anew; False where Redis is away."""
        try:
            if self._redis is not None:
                self._redis.delete(FLAG)
        except (redis.RedisError, OSError):
            return False
        return True


class Bell:
    """Rings in a thread of its own; started by the first ring, in whichever process that is."""

    def __init__(self, flag: RingFlag, broker: Broker, *, monotonic: Callable[[], float]) -> None:
        """Starts nothing yet.

        Args:
            flag: Keeps rings from piling up.
            broker: Sends the message; bounded, and never raises.
            monotonic: A clock in seconds that only grows.
        """
        self._flag = flag
        self._broker = broker
        self._monotonic = monotonic
        self._rest_until_s = float("-inf")
        self._reset()
        forget = weakref.WeakMethod(self._reset)
        os.register_at_fork(after_in_child=lambda: _call(forget))

    def _reset(self) -> None:
        """A child of a fork inherits no thread."""
        self._condition = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_wanted = False
        self._is_stopping = False

    def ring(self) -> None:
        """Asks for a ring and returns at once. Rings asked for while one is under way become one."""
        with self._condition:
            self._is_wanted = True
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="inbox-bell", daemon=True)
                self._thread.start()
            self._condition.notify()

    def stop(self) -> None:
        """Lets a ring under way finish, then ends the thread; the next ring would start another."""
        with self._condition:
            thread, self._is_stopping = self._thread, True
            self._condition.notify_all()
        if thread is not None:
            thread.join()
        with self._condition:
            self._thread, self._is_stopping = None, False

    def ring_now(self) -> bool:
        """Rings in this thread; says whether a message was sent by it."""
        if self._monotonic() < self._rest_until_s:
            return False  # the flag is not touched either: it would silence the first ring after the rest
        try:
            if not self._flag.put_up():
                return False
        except (redis.RedisError, OSError) as error:
            self._rest("Redis does not answer", error)
            return False
        if self._broker.publish(DRAIN):
            return True
        self._flag.take_down()
        self._rest("the message could not be sent")
        return False

    def _run(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._is_wanted or self._is_stopping)
                if not self._is_wanted:
                    return
                self._is_wanted = False
            began_s = self._monotonic()
            self._ring_safely()
            self._pause((self._monotonic() - began_s) * _PAUSES_PER_RING)

    def _pause(self, span_s: float) -> None:
        with self._condition:
            self._condition.wait_for(lambda: self._is_stopping, timeout=min(span_s, _LONGEST_PAUSE_S))

    def _ring_safely(self) -> None:
        try:
            self.ring_now()
        except Exception as error:  # noqa: BLE001 - a ring may get lost, its thread may not
            self._rest("the ring failed", error)

    def _rest(self, why: str, error: Exception | None = None) -> None:
        self._rest_until_s = self._monotonic() + _REST.total_seconds()
        _log.warning("the bell rests; the sweep works on", why=why, error=str(error) if error else None)


def _call(method: weakref.WeakMethod[Callable[[], None]]) -> None:
    bound = method()
    if bound is not None:
        bound()
