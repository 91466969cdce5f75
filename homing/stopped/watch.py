"""Who is stopped, and for how long: one that stays so is killed, and whoever started it starts another."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple

import psutil
import structlog

_EVERY_S = 2.5
# Long enough for somebody who only wants a moment's stillness; with a start, half a minute from the stop to work.
_PATIENCE_S = 15.0

#: What a look at a process may meet: it is gone or another's, we have no descriptor left, ``/proc`` is not all there.
UNSEEN = (psutil.Error, OSError, NotImplementedError)

_log = structlog.get_logger(__name__)


class _Halt(NamedTuple):
    """One stop of one process. A process that went on in between has been switched to since."""

    began_at: float
    switches: int


class StoppedWatch:
    """Counts, look by look, how long processes have been stopped without a break, and ends those that stay so.

    One that a debugger holds is traced, not stopped, and is left alone; elsewhere than on Linux the two cannot be told
    apart, and nobody is judged. One that is stopped and let go on again and again, which is how some tools limit its
    share of the processor, is left alone as well. Looks are counted, not time: where the looker was stopped too
    (Ctrl-Z), nobody has waited meanwhile.

    Attributes:
        every_s: Seconds between two looks.
    """

    def __init__(self, *, every_s: float = _EVERY_S, patience_s: float = _PATIENCE_S) -> None:
        """Looks at nobody yet.

        Args:
            every_s: Seconds between two looks.
            patience_s: How long a process may stay stopped.
        """
        self.every_s = every_s
        self._patience_s = patience_s
        self._halts: dict[int, tuple[_Halt, float]] = {}

    def look(self, pids: Iterable[int], *, kill: Callable[[int, int], None] = os.kill) -> None:
        """One look at these processes; those that are gone, or not ours to see, are passed over."""
        if not psutil.LINUX:
            return
        before, self._halts = self._halts, {}
        for pid in pids:
            halt = _halt_of(pid)
            if halt is None:
                continue
            known, for_s = before.get(pid, (None, 0.0))
            for_s = for_s + self.every_s if known == halt else 0.0
            self._halts[pid] = halt, for_s
            if for_s >= self._patience_s:
                _log.error("process stayed stopped and is killed; another one takes its place", pid=pid, for_s=for_s)
                with suppress(ProcessLookupError, PermissionError):
                    kill(pid, signal.SIGKILL)
            elif known is None:
                _log.warning("process is stopped", pid=pid, remedy=f"kill -CONT {pid}", killed_after_s=self._patience_s)


def is_stopped(pid: int) -> bool:
    """Whether a process is stopped; one that is gone, or not ours to see, is not."""
    return _halt_of(pid) is not None


def _halt_of(pid: int) -> _Halt | None:
    try:
        process = psutil.Process(pid)
        if process.status() != psutil.STATUS_STOPPED:
            return None
        switches = process.num_ctx_switches()
        return _Halt(process.create_time(), switches.voluntary + switches.involuntary)
    except UNSEEN:
        return None
