"""Which processes belong to one server."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from homing.stopped.siblings import siblings_of

_FORKS = """
import os, sys
pids = []
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        sys.stdin.buffer.raw.read(1)
        os._exit(0)
    pids.append(pid)
print(*pids, flush=True)
sys.stdin.buffer.raw.read(1)
"""
_STARTS = """
import subprocess, sys
command = [sys.executable, "-c", "import sys; sys.stdin.buffer.raw.read(1)"]
children = [subprocess.Popen(command) for _ in range(3)]
print(*(child.pid for child in children), flush=True)
sys.stdin.buffer.raw.read(1)
"""


@contextmanager
def running(program: str) -> Iterator[list[int]]:
    """The children of a program, all of which end with their common input."""
    main = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert main.stdout is not None
    yield [int(word) for word in main.stdout.readline().split()]
    main.communicate()


def test_those_that_one_server_forked_are_siblings() -> None:
    with running(_FORKS) as pids:
        assert sorted(siblings_of(pids[0])) == sorted(pids[1:])


def test_neighbours_in_a_shell_are_none() -> None:
    """They may bear one command line; whoever started them does not."""
    with running(_STARTS) as pids:
        assert siblings_of(pids[0]) == []


def test_one_that_is_gone_has_none() -> None:
    assert siblings_of(2**22 + 1) == []
