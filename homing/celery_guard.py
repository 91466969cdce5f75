"""Keeps a worker alive when Redis dies while a message is un-acknowledged.

In celery 5.7.0 with kombu 5.7.0 the worker's main process then ends with ``AttributeError: 'NoneType' object has no
attribute 'hostname'``: the consumer closes a connection a second time after its transport was detached, closing
gives un-acknowledged messages back, and that asks a channel without a connection for its address. The surrounding
code expects, and survives, a connection error there. So that is what the guard raises.

Only ``Channel._connparams`` is the right place: guarding the giving back alone moves the crash to the
acknowledgement of the task that still runs. Another kombu is left alone, and the fleet stands without the guard
too: the supervisor restarts a worker that exits, and the sweeps finish its jobs.
"""

from __future__ import annotations

import functools
from importlib.metadata import version
from typing import Any

from kombu.transport import redis as transport
from redis.exceptions import ConnectionError as RedisConnectionError

GUARDED_VERSION = "5.7.0"


def install() -> bool:
    """Guards this process; does nothing the second time.

    Returns:
        Whether the guard stands: false where kombu is not the version it was written against.
    """
    if version("kombu") != GUARDED_VERSION:
        return False
    channel: Any = transport.Channel
    if not hasattr(channel._connparams, "__wrapped__"):  # noqa: SLF001 - the method that dereferences None
        channel._connparams = _guarded(channel._connparams)  # noqa: SLF001
    return True


def _guarded(original: Any) -> Any:
    @functools.wraps(original)
    def connparams(channel: Any, asynchronous: bool = False) -> Any:
        connection = channel.connection
        if connection is None or connection.client is None:
            raise RedisConnectionError("the channel was detached from its connection")
        return original(channel, asynchronous)

    return connparams
