"""Bells that say "look": one on its way is enough.

Every commit with an event asks for a relay, and a relay takes all there is. Under load a message for each would fill
the queue with looks that find nothing, each dearer than what it announces, and a webhook's own bell would wait behind
them. So such a bell leaves a mark in Redis when it is rung, and whoever begins to look takes it away first: what is
committed after that rings anew. A mark whose message was lost ends by itself; meanwhile the sweep looks.
"""

from __future__ import annotations

import redis

from homing.celery_app import KEY_PREFIX
from jobs.broker import DISPATCH, RELAY

#: Tasks that take no arguments and all the work there is. (The receiver's own bell has its own flag.)
LOOKS = frozenset({RELAY, DISPATCH})
_LASTS_S = 5


def mark(client: redis.Redis, task: str) -> bool:
    """Leaves the mark of a bell; False where one is on its way already.

    Raises:
        redis.RedisError: Redis cannot be asked.
    """
    return bool(client.set(_key(task), 1, nx=True, ex=_LASTS_S))


def unmark(client: redis.Redis, task: str) -> None:
    """Takes it away; where Redis cannot be asked it ends by itself."""
    try:
        client.delete(_key(task))
    except (redis.RedisError, OSError):
        return


def _key(task: str) -> str:
    return f"{KEY_PREFIX}rung:{task}"
