"""The streams' bell: something was committed, look now. It may lose every ring; streams look twice a second anyway.

Redis: one channel, ``homing:jobs:changed``, whose messages say nothing. One subscription per web process, and only
while somebody follows a job.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

import redis
import structlog

CHANNEL = "homing:jobs:changed"
#: After a failure Redis is left alone for so long.
_REST_S = 5.0
#: Rings of one burst become one look.
_BURST_S = 0.02
# The last two are redis-py's where the process closes the client under a thread that listens on it.
_LOST = (redis.RedisError, OSError, ValueError, AttributeError)

_log = structlog.get_logger(__name__)


def announce(client: redis.Redis | None) -> None:
    """Rings, after a commit. Never raises; waits no longer than the client's time-outs."""
    try:
        if client is not None:
            client.publish(CHANNEL, "")
    except (redis.RedisError, OSError):
        pass  # only speed


class StreamBell(Protocol):
    """Something to wait on between two looks at the database."""

    def wait(self, at_most_s: float) -> None:
        """Returns at a ring, or after a time."""
        ...

    def close(self) -> None:
        """Lets go of the connection."""
        ...


class RedisBell:
    """Rung through Redis. For one thread at a time."""

    def __init__(self, client: redis.Redis | None, *, monotonic: Callable[[], float]) -> None:
        """Connects to nothing yet.

        Args:
            client: With short time-outs and without retries; without one nothing rings.
            monotonic: A clock in seconds that only grows.
        """
        self._redis = client
        self._monotonic = monotonic
        self._subscription: Any = None  # redis-py's PubSub, whose methods are not typed
        self._rest_until_s = float("-inf")
        self._never = threading.Event()

    def wait(self, at_most_s: float) -> None:
        """Returns at a ring, after a time, or once the subscription is confirmed: what came before was not heard."""
        if self._redis is None or self._monotonic() < self._rest_until_s:
            self._never.wait(at_most_s)
            return
        try:
            if self._subscription is None:
                self._subscribe(self._redis)
            elif self._subscription.get_message(timeout=at_most_s) is not None:
                self._hear_out()
        except _LOST as error:
            self._rest(error)

    def close(self) -> None:
        """Ends the subscription; the next wait begins another."""
        subscription, self._subscription = self._subscription, None
        try:
            if subscription is not None:
                subscription.close()
        except _LOST:
            pass  # it was gone

    def _subscribe(self, client: redis.Redis) -> None:
        self._subscription = client.pubsub()  # type: ignore[no-untyped-call] # redis-py ships no types here
        self._subscription.subscribe(CHANNEL)
        if self._subscription.get_message(timeout=1.0) is None:
            raise redis.TimeoutError("the subscription was not confirmed")

    def _hear_out(self) -> None:
        self._never.wait(_BURST_S)
        while self._subscription.get_message(timeout=0.0) is not None:
            pass

    def _rest(self, error: Exception) -> None:
        self.close()
        self._rest_until_s = self._monotonic() + _REST_S
        _log.warning("streams hear no bell; they look by themselves", reason=str(error))
