"""A store of locks that a fake clock drives."""

from __future__ import annotations

from datetime import datetime, timedelta

from jobs.clock import Clock
from reconciler.lock import StoreAway


class MemoryLockStore:
    """Keys of this process; ``away`` makes every question fail."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._held: dict[str, tuple[str, datetime]] = {}
        self.away = False

    def take(self, key: str, owner: str, ttl: timedelta) -> bool:
        if self._owner(key) is not None:
            return False
        self._held[key] = (owner, self._clock.now() + ttl)
        return True

    def renew(self, key: str, owner: str, ttl: timedelta) -> bool:
        if self._owner(key) != owner:
            return False
        self._held[key] = (owner, self._clock.now() + ttl)
        return True

    def drop(self, key: str, owner: str) -> bool:
        if self._owner(key) != owner:
            return False
        del self._held[key]
        return True

    def _owner(self, key: str) -> str | None:
        if self.away:
            raise StoreAway("no store today")
        owner, until = self._held.get(key, (None, self._clock.now()))
        return owner if until > self._clock.now() else None
