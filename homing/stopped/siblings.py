"""The processes of a web server.

Each listens on a socket of its own (``SO_REUSEPORT``), and the system deals connections out to all of them. One that
is stopped is dealt its share as well: with two, every second webhook waits until its sender gives up. The server's
main process looks at nothing but deaths. So the others look, and the main process starts another one.
"""

from __future__ import annotations

import os
import threading

import psutil
import structlog

from homing.stopped.watch import UNSEEN, StoppedWatch

_log = structlog.get_logger(__name__)


def watch_siblings() -> None:
    """Looks at the other processes of this server from now on, in a thread. Called after any fork."""
    watch = StoppedWatch()

    def look() -> None:
        pause = threading.Event()
        while not pause.wait(watch.every_s):
            try:
                watch.look(siblings_of(os.getpid()))
            except Exception as error:  # noqa: BLE001 - a watch that ends for what it met once sees nothing later
                _log.warning("sibling processes could not be looked at", error=f"{type(error).__name__}: {error}")

    threading.Thread(target=look, name="sibling-watch", daemon=True).start()


def siblings_of(pid: int) -> list[int]:
    """The other processes that the same server forked.

    They all bear its command line: so nobody's shell is taken for a server, and no neighbour in it for a sibling. A
    server that starts its processes by other means than a fork is not known by this, and has none.
    """
    try:
        own = psutil.Process(pid)
        main = own.parent()
        command = _command_of(own)
        if main is None or not command or _command_of(main) != command:
            return []
        return [one.pid for one in main.children() if one.pid != pid and _command_of(one) == command]
    except UNSEEN:
        return []


def _command_of(process: psutil.Process) -> list[str]:
    """Empty where it is gone."""
    try:
        return list(process.cmdline())
    except UNSEEN:
        return []
