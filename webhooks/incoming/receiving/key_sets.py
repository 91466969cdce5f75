"""The key sets that senders publish, kept at hand: a request is answered from memory and never waits for one.

A set is fetched in a thread of its own, when it is first asked for, before it grows old, and when a signature fits
none of its keys, which is what a new key looks like. The last is rate-limited, since a forger can cause it at will.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterable
from datetime import timedelta

import structlog

from jobs.core.errors import JobsError, Unavailable
from jobs.core.signatures import Secret
from jobs.core.signatures.key_sets import parse_key_set
from jobs.net.http import Answer

Fetch = Callable[[str], Answer]

#: Fetched anew after this long, so that a good set is at hand when the old one ends.
REFRESH_AFTER = timedelta(hours=12)
#: fal asks that its keys be kept no longer.
GOOD_FOR = timedelta(hours=24)
#: Between two tries while there is no usable set.
RETRY_AFTER = timedelta(seconds=10)
#: Between two fetches that a signature which fits no key has caused.
UNKNOWN_KEY_EVERY = timedelta(seconds=60)

_log = structlog.get_logger(__name__)


class _KeySet:
    """One set; its times are on the monotonic clock."""

    __slots__ = ("fetched_at_s", "keys", "thread", "tried_at_s")

    def __init__(self) -> None:
        self.keys: tuple[Secret, ...] = ()
        self.fetched_at_s = float("-inf")
        self.tried_at_s = float("-inf")
        self.thread: threading.Thread | None = None


class KeySets:
    """Key sets by address. Thread-safe; one per process."""

    def __init__(
        self, fetch: Fetch, *, monotonic: Callable[[], float], on_new_keys: Callable[[str], None] = lambda _url: None
    ) -> None:
        """Fetches nothing yet.

        Args:
            fetch: Gets an address; may raise.
            monotonic: A clock in seconds that only grows.
            on_new_keys: Called, in the fetching thread, with the address of a set that has changed.
        """
        self._fetch = fetch
        self._monotonic = monotonic
        self._on_new_keys = on_new_keys
        self._reset()
        forget = weakref.WeakMethod(self._reset)
        os.register_at_fork(after_in_child=lambda: _call(forget))

    def _reset(self) -> None:
        """A child of a fork inherits no thread, and perhaps a lock that is held."""
        self._lock = threading.Lock()
        self._sets: dict[str, _KeySet] = {}

    def keys(self, url: str) -> tuple[Secret, ...]:
        """The keys of a set, from memory.

        Raises:
            Unavailable: There are none yet, or none young enough; they are being fetched.
        """
        with self._lock:
            known = self._sets.setdefault(url, _KeySet())
            age_s = self._monotonic() - known.fetched_at_s
            if age_s > REFRESH_AFTER.total_seconds():
                self._begin(url, known, every=RETRY_AFTER)
            if age_s > GOOD_FOR.total_seconds():
                raise Unavailable("the sender's key set could not be fetched yet", retry_after=RETRY_AFTER)
            return known.keys

    def note_unknown_key(self, url: str) -> None:
        """A signature fits no key: perhaps there is a new one."""
        with self._lock:
            self._begin(url, self._sets.setdefault(url, _KeySet()), every=UNKNOWN_KEY_EVERY)

    def prefetch(self, urls: Iterable[str]) -> None:
        """Begins to fetch sets, so that the first request finds them."""
        for url in urls:
            with self._lock:
                self._begin(url, self._sets.setdefault(url, _KeySet()), every=RETRY_AFTER)

    def wait(self, timeout_s: float = 10.0) -> None:
        """Waits for what is being fetched; for tests and for the end of a process."""
        with self._lock:
            threads = [known.thread for known in self._sets.values() if known.thread is not None]
        for thread in threads:
            thread.join(timeout_s)

    def _begin(self, url: str, known: _KeySet, *, every: timedelta) -> None:
        now_s = self._monotonic()
        is_busy = known.thread is not None and known.thread.is_alive()
        if is_busy or now_s - known.tried_at_s < every.total_seconds():
            return
        known.tried_at_s = now_s
        known.thread = threading.Thread(target=self._refresh, args=(url, known), name="key-set", daemon=True)
        known.thread.start()

    def _refresh(self, url: str, known: _KeySet) -> None:
        try:
            keys = self._get(url)
        except Exception as error:  # noqa: BLE001 - the old keys stay; requests say "come again" once those are too old
            reason = error.detail if isinstance(error, JobsError) else type(error).__name__
            _log.warning("a key set could not be fetched", url=url, reason=reason)
            return
        with self._lock:
            is_new = bool(known.keys) and known.keys != keys
            known.keys, known.fetched_at_s = keys, self._monotonic()
        _log.info("key set fetched", url=url, keys=len(keys), changed=is_new)
        if is_new:
            self._tell(url)

    def _get(self, url: str) -> tuple[Secret, ...]:
        answer = self._fetch(url)
        if not answer.is_success:
            raise Unavailable(f"it answered {answer.status}")
        return parse_key_set(answer.body)

    def _tell(self, url: str) -> None:
        try:
            self._on_new_keys(url)
        except Exception as error:  # noqa: BLE001 - what was refused stays in quarantine until somebody asks for a recheck
            _log.warning("refused requests were not checked again", url=url, reason=type(error).__name__)


def _call(method: weakref.WeakMethod[Callable[[], None]]) -> None:
    bound = method()
    if bound is not None:
        bound()
