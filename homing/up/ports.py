"""Loopback ports for processes that are started a moment later, and again at each restart.

A port between the look and the use belongs to nobody. The system hands out its own range (from 32768 on Linux, 49152 on
macOS) to every outgoing connection of the machine, so a port from there can be lost at any moment; below it, only to
a server that was told to take that very number.
"""

from __future__ import annotations

import socket

from jobs.clock import system_rng

_FIRST, _LAST = 20_000, 32_000
_given: set[int] = set()


def free_port() -> int:
    """A loopback port that nobody listens on now, and that this process was not given before.

    Raises:
        OSError: Every port of the range is taken.
    """
    rng = system_rng()
    for port in rng.sample(range(_FIRST, _LAST), _LAST - _FIRST):
        if port not in _given and _is_free(port):
            _given.add(port)
            return port
    raise OSError(f"no loopback port between {_FIRST} and {_LAST} is free")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
