"""The quarantine's entrance: a refused request is put down in passing, and written by a thread of its own.

It may lose every one of them: a provider sends again, and polls bring home what it does not. What it must not do is
make a refusal slow, or give strangers a way to fill memory or disk, so everything here is bounded and dropped beyond.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from datetime import datetime

import structlog

from jobs.core.signatures import SCHEMES
from jobs.ids import new_id
from jobs.services.runtime import ProviderEntry
from webhooks.incoming.credentials import kept_headers
from webhooks.incoming.receiving.admission import Sent
from webhooks.incoming.receiving.quarantine_rows import Refused
from webhooks.incoming.wording import describe

Store = Callable[[Sequence[Refused]], None]

#: Larger requests are not kept. Webhooks have a few kilobytes.
MAX_REQUEST_BYTES = 256 * 1024
_MAX_WAITING = 100
_MAX_WAITING_BYTES = 2 * 2**20
#: Between two writes: under a flood of refusals the database has one small transaction a second.
_PAUSE_S = 1.0

_log = structlog.get_logger(__name__)


class Quarantine:
    """Keeps refused requests. Thread-safe; one per process; its thread starts with the first of them."""

    def __init__(self, store: Store) -> None:
        """Starts nothing yet; ``store`` commits some refused requests and may raise."""
        self._store = store
        self._reset()
        forget = weakref.WeakMethod(self._reset)
        os.register_at_fork(after_in_child=lambda: _call(forget))

    def _reset(self) -> None:
        """A child of a fork inherits no thread, and perhaps a lock that is held."""
        self._condition = threading.Condition()
        self._waiting: list[Refused] = []
        self._waiting_bytes = 0
        self._thread: threading.Thread | None = None
        self._is_stopping = False

    def keep(self, entry: ProviderEntry, sent: Sent, *, at: datetime, reason: str) -> bool:
        """Puts a refused request down, and returns at once; says whether there was room.

        Args:
            entry: Whose it claimed to be.
            sent: The request.
            at: When it came.
            reason: Why it was refused.
        """
        refused = _refused(entry, sent, at=at, reason=reason)
        if refused is None:
            return False
        with self._condition:
            if len(self._waiting) >= _MAX_WAITING or self._waiting_bytes + refused.size_bytes > _MAX_WAITING_BYTES:
                return False
            self._waiting.append(refused)
            self._waiting_bytes += refused.size_bytes
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="quarantine", daemon=True)
                self._thread.start()
            self._condition.notify()
        return True

    def flush(self) -> None:
        """Writes what waits, in this thread; what cannot be written is lost."""
        with self._condition:
            waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if not waiting:
            return
        try:
            self._store(waiting)
        except Exception as error:  # noqa: BLE001 - see the module: a refused request may be lost, the thread may not
            _log.warning("refused requests were not kept", requests=len(waiting), error=describe(error))

    def stop(self) -> None:
        """Writes what waits, and ends the thread; the next refusal would start another."""
        with self._condition:
            thread, self._is_stopping = self._thread, True
            self._condition.notify_all()
        if thread is not None:
            thread.join()
        self.flush()
        with self._condition:
            self._thread, self._is_stopping = None, False

    def _run(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._waiting or self._is_stopping)
                if self._is_stopping:
                    return
            self.flush()
            with self._condition:
                self._condition.wait_for(lambda: self._is_stopping, timeout=_PAUSE_S)


def _refused(entry: ProviderEntry, sent: Sent, *, at: datetime, reason: str) -> Refused | None:
    """The row; None where the request could never be admitted, or is not worth its room."""
    config = entry.config
    size_bytes = len(sent.raw) + len(sent.target) + sum(len(name) + len(text) for name, text in sent.headers.items())
    is_storable = "\x00" not in sent.target and not any("\x00" in text for text in sent.headers.values())
    if not SCHEMES[config.webhook_scheme].takes_secrets or size_bytes > MAX_REQUEST_BYTES or not is_storable:
        return None
    return Refused(
        id=new_id("ref", at=at),
        provider=entry.name,
        token=sent.token,
        target=sent.target,
        headers=kept_headers(config.webhook_scheme, sent.headers, config.scheme_options),
        raw=sent.raw,
        size_bytes=size_bytes,
        reason=reason,
        received_at=at,
    )


def _call(method: weakref.WeakMethod[Callable[[], None]]) -> None:
    bound = method()
    if bound is not None:
        bound()
