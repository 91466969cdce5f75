"""One sweeper at a time, by a lock in Redis.

The lock saves work; correctness never depends on it. It always has an end, only its owner renews or releases it, and
where Redis cannot be asked the sweep runs unlocked: its writes repeat their premises and its epoch fences off
whoever else is at work, while a sweep that does not run brings nobody home.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Protocol

import redis
import structlog

from jobs.ids import new_token

PREFIX = "homing:lock:"
_RENEW = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0"
_DROP = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"
_log = structlog.get_logger(__name__)


class StoreAway(Exception):
    """The store of locks could not be asked."""


class LockStore(Protocol):
    """Keys with an owner and an end. Every method may raise ``StoreAway``."""

    def take(self, key: str, owner: str, ttl: timedelta) -> bool:
        """Takes a free key; False where it has an owner."""
        ...

    def renew(self, key: str, owner: str, ttl: timedelta) -> bool:
        """Moves the end of the owner's key to ``ttl`` from now (not that much later); False where it is not theirs."""
        ...

    def drop(self, key: str, owner: str) -> bool:
        """Frees the owner's key; False where it is not theirs."""
        ...


class RedisLockStore:
    """Keys in Redis. Give it a client with short timeouts and no retries (``homing.redis_client``)."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def take(self, key: str, owner: str, ttl: timedelta) -> bool:
        """See :class:`LockStore`."""
        return bool(self._ask("SET", key, owner, "NX", "PX", _milliseconds(ttl)))

    def renew(self, key: str, owner: str, ttl: timedelta) -> bool:
        """See :class:`LockStore`."""
        return bool(self._ask("EVAL", _RENEW, 1, key, owner, _milliseconds(ttl)))

    def drop(self, key: str, owner: str) -> bool:
        """See :class:`LockStore`."""
        return bool(self._ask("EVAL", _DROP, 1, key, owner))

    def _ask(self, *command: str | int) -> Any:
        try:
            return self._client.execute_command(*command)  # type: ignore[no-untyped-call] # redis-py ships no type for it
        except (redis.RedisError, OSError) as error:
            raise StoreAway(str(error)) from error


class Hold(StrEnum):
    """How a run holds its lock."""

    LOCKED = "locked"
    UNLOCKED = "unlocked"  # the store is away; runs all the same


@dataclass(slots=True)
class SweepLock:
    """One owner's lock on one name.

    Attributes:
        store: Where locks are kept.
        name: What is locked.
        ttl: How long it holds without being renewed; a dead owner blocks others for so long.
        owner: This owner's token; nobody else has it.
    """

    store: LockStore
    name: str
    ttl: timedelta
    owner: str = ""
    hold: Hold | None = None

    def __post_init__(self) -> None:
        """Refuses a lock that would never end, or end at once.

        Raises:
            ValueError: ``ttl`` is shorter than a millisecond.
        """
        check_ttl(self.ttl)
        self.owner = self.owner or new_token()

    def acquire(self) -> bool:
        """Takes the lock; False where somebody else has it. Never waits."""
        try:
            taken = self.store.take(PREFIX + self.name, self.owner, self.ttl)
        except StoreAway as away:
            _log.warning("sweeping without a lock", lock=self.name, reason=str(away))
            self.hold = Hold.UNLOCKED
            return True
        self.hold = Hold.LOCKED if taken else None
        return taken

    def renew(self) -> bool:
        """Moves the end to a whole ``ttl`` from now; False where the lock has been lost."""
        if self.hold is not Hold.LOCKED:
            return self.hold is Hold.UNLOCKED
        try:
            return self.store.renew(PREFIX + self.name, self.owner, self.ttl) or self._lost()
        except StoreAway as away:
            _log.warning("lock not renewed", lock=self.name, reason=str(away))
            return True  # the epoch stops us if anybody has taken over

    def release(self) -> bool:
        """Frees the lock if it is still ours; a later owner's is left alone."""
        if self.hold is not Hold.LOCKED:
            return False
        self.hold = None
        try:
            return self.store.drop(PREFIX + self.name, self.owner) or self._lost()
        except StoreAway as away:
            _log.warning("lock not released", lock=self.name, reason=str(away))
            return False  # it ends by itself

    def _lost(self) -> bool:
        self.hold = None
        _log.warning("lock lost", lock=self.name)
        return False


def check_ttl(ttl: timedelta) -> None:
    """Refuses a lock's length of nothing.

    Raises:
        ValueError: It is shorter than a millisecond, the least Redis can count.
    """
    if ttl < timedelta(milliseconds=1):
        raise ValueError(f"a lock of {ttl.total_seconds():g} s would exclude nobody; give it at least a millisecond")


def _milliseconds(ttl: timedelta) -> int:
    return ttl // timedelta(milliseconds=1)
