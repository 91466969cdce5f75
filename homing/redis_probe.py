"""A look at Redis from outside Celery: does it answer, and how much waits in the queues."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

import redis

from homing.celery_app import KEY_PREFIX
from homing.redis_urls import connect

_TIMEOUT_S = 0.5
#: Messages that were handed out and are not done yet; more than the fleet's workers can hold is not read.
_MAX_UNACKED = 1000


class RedisProbe:
    """Asks a Redis, in bounded time."""

    def __init__(self, redis_url: str) -> None:
        """Connects to nothing yet."""
        self._client: Any = connect(redis_url, timeout_s=_TIMEOUT_S)

    def fault(self) -> str | None:
        """Why Redis cannot be used; None where it answers."""
        try:
            self._client.ping()
        except (redis.RedisError, OSError) as error:
            return f"{type(error).__name__}: {error}"
        return None

    def depths(self, queues: Iterable[str]) -> dict[str, int]:
        """Messages that wait in each queue; empty where Redis does not answer."""
        names = list(queues)
        try:
            pipeline = self._client.pipeline(transaction=False)
            for name in names:
                pipeline.llen(KEY_PREFIX + name)
            return dict(zip(names, pipeline.execute(), strict=True))
        except (redis.RedisError, OSError):
            return {}

    def unacked(self, queues: Iterable[str]) -> dict[str, int]:
        """Messages that a worker holds and has not finished, by queue; empty where Redis does not answer."""
        try:
            _, held = self._client.hscan(f"{KEY_PREFIX}unacked", count=_MAX_UNACKED)
        except (redis.RedisError, OSError):
            return {}
        found = Counter(filter(None, map(_queue_of, held.values())))
        return {name: found[name] for name in queues}


def _queue_of(entry: bytes) -> str | None:
    """The queue of an unacknowledged message: kombu keeps ``[message, exchange, routing key]``."""
    try:
        return str(json.loads(entry)[2])
    except (ValueError, LookupError, TypeError):
        return None
