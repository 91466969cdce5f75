"""Becomes the process it is told to start, after tying its life to its parent's.

Run as a script with nothing but the standard library (``python -I -S launch.py FILE``), so that it costs
milliseconds and imports none of the product. The file is JSON: ``{"argv", "environment", "pid_file"}``; a file
and not arguments, because it holds secrets and a command line can be read by everybody on the machine.

1. Where the kernel offers it (Linux), this process will get SIGTERM when its parent dies. A runner killed with
   SIGKILL leaves nothing behind. The request survives the exec; it does not reach grandchildren, which end with
   their own parents.
2. Whatever is left of the process that stood here before is ended: a main process killed with SIGKILL can leave
   children that still hold its port or its tasks. They are in the process group of the number in the pid file.
3. The pid file names this process. It lives in a folder made for this run, so its number is never of another boot.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def main(orders_file: str) -> None:
    """Never returns: the command replaces this program."""
    orders = json.loads(Path(orders_file).read_text(encoding="utf-8"))
    pid_file = Path(orders["pid_file"])
    _end_with_parent()
    _end_predecessor(pid_file)
    pid_file.write_text(str(os.getpid()), encoding="ascii")
    argv = orders["argv"]
    os.execvpe(argv[0], argv, {**os.environ, **orders["environment"]})  # noqa: S606 - the fleet's own list


def _end_with_parent() -> None:
    parent = os.getppid()
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it died before we had asked
        raise SystemExit(1)


def _end_predecessor(pid_file: Path) -> None:
    if not pid_file.exists():
        return
    try:
        os.killpg(int(pid_file.read_text(encoding="ascii")), signal.SIGKILL)
    except (ProcessLookupError, PermissionError, ValueError):
        pass  # nobody is left


if __name__ == "__main__":
    main(sys.argv[1])
