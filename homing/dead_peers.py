"""Peers that vanish without a word: a cut cable, a frozen machine, a firewall that forgot.

The kernel would repeat what it sent for a quarter of an hour before it gave the connection up, and a stream's thread
would wait with it. The servers have no option for this; but a connection inherits it from the socket it was accepted
on, and that one is in the process of the application.

Source: tcp(7), ``TCP_USER_TIMEOUT``.
"""

from __future__ import annotations

import os
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

#: How long a peer may leave unanswered what was sent to it.
PATIENCE_MS = 20_000
_LOOKS = 60
_LOOK_EVERY_S = 0.5
_OWN_FILES = Path("/proc/self/fd")


def give_up_on_dead_peers(patience_ms: int = PATIENCE_MS) -> int:
    """Sets the time-out for every connection that this process will accept; says on how many sockets.

    None where the system has no such option or shows a process no list of its files: then a stream to a dead peer
    ends with its longest life.
    """
    option = getattr(socket, "TCP_USER_TIMEOUT", None)
    if option is None or not _OWN_FILES.exists():
        return 0
    return sum(_set(number, option, patience_ms) for number in _sockets())


def give_up_once_listening() -> None:
    """The same, in a thread of its own: a server may listen only after the application was built."""

    def look() -> None:
        pause = threading.Event()
        for _ in range(_LOOKS):
            if give_up_on_dead_peers():
                return
            pause.wait(_LOOK_EVERY_S)

    threading.Thread(target=look, name="dead-peers", daemon=True).start()


def _sockets() -> Iterator[int]:
    for number in [int(file.name) for file in _OWN_FILES.iterdir()]:
        try:
            is_socket = stat.S_ISSOCK(os.fstat(number).st_mode)
        except OSError:
            continue  # the list's own file is closed by now
        if is_socket:
            yield number


def _set(number: int, option: int, patience_ms: int) -> bool:
    try:
        with socket.socket(fileno=os.dup(number)) as found:
            if not _accepts(found):
                return False
            found.setsockopt(socket.IPPROTO_TCP, option, patience_ms)
    except OSError:
        return False
    return True


def _accepts(found: socket.socket) -> bool:
    """Whether connections come from it."""
    if found.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    return found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
