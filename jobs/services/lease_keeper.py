"""Keeps a database lease alive while work of unknown length runs in this thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

import structlog

from jobs.core.errors import Unavailable

_log = structlog.get_logger(__name__)


class LeaseKeeper:
    """Renews a lease from a thread of its own, from entering the ``with`` block to leaving it.

    A lease that was lost is not renewed again; the work cannot be stopped, but its last write will be refused.
    """

    def __init__(self, renew: Callable[[], bool], *, every_s: float) -> None:
        """Names the renewal; nothing starts yet.

        Args:
            renew: Moves the lease's end; False where the lease has passed on.
            every_s: Well below the lease's length, so that one failed renewal costs nothing.
        """
        self._renew = renew
        self._every_s = every_s
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="lease-keeper", daemon=True)

    def __enter__(self) -> Self:
        """Starts renewing."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops renewing, and waits for a renewal under way."""
        self._done.set()
        self._thread.join()

    def _keep(self) -> None:
        while not self._done.wait(self._every_s):
            if not self.renew_once():
                return

    def renew_once(self) -> bool:
        """One renewal; False where there is nothing left to renew."""
        try:
            held = self._renew()
        except Unavailable as outage:
            _log.warning("lease not renewed", reason=str(outage))
            return True
        if not held:
            _log.warning("lease lost while working")
        return held
