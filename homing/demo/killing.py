"""Kills processes of the demo's fleet while its jobs run: what dies may cost time, and neither a job nor an effect."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, TypeVar

import psutil

from homing.demo.telling import Teller
from homing.up.processes import NAMES
from jobs.core.backoff import Rng

#: By process name: the main process, then its children; as in ``run.json``.
Pids: TypeAlias = Mapping[str, Sequence[int]]
T = TypeVar("T")

#: One death for so many jobs; so many at least.
_JOBS_PER_KILL, _LEAST = 4, 6
#: Seconds between two deaths: long enough that something is at work again, short enough that not everything is.
_PAUSE_S = (1.0, 4.0)
# The simulator is no part of the fleet, and Flower does no work of a job.
_VICTIMS = tuple(name for name in NAMES if name not in ("simulator", "flower"))
# A main process takes its children along, and is back only after seconds; so a child is the likelier victim.
_MAIN_SHARE = 0.35
# A number can be a stranger's by the time it is used.
_PROGRAMS = frozenset({"granian", "celery", "redis-server", "valkey-server"})


@dataclass(slots=True)
class Killer:
    """Kills by process id, at times and in an order that the seed decides.

    Attributes:
        pids: tells what runs; asked before each death.
        wanted: deaths at most.
        killed: so far, by name, such as ``worker-io child``.
    """

    pids: Callable[[], Pids]
    rng: Rng
    tell: Teller
    wanted: int
    killed: Counter[str] = field(default_factory=Counter)
    _stopped: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Kill until enough have died, or `stop` is called."""
        while self.killed.total() < self.wanted and not self._stopped.wait(self.rng.uniform(*_PAUSE_S)):
            victim = choose_victim(self.pids(), self.rng)
            if victim is not None and kill(victim[1]):
                self.killed[victim[0]] += 1
                self.tell(f"killed {victim[0]}, process {victim[1]}")

    def stop(self) -> None:
        """Kill nobody any more."""
        self._stopped.set()


def deaths_for(jobs: int) -> int:
    """How many processes are to die while so many jobs run."""
    return max(_LEAST, jobs // _JOBS_PER_KILL)


def choose_victim(pids: Pids, rng: Rng) -> tuple[str, int] | None:
    """Return a process's name and number; None while none of them runs."""
    living = [name for name in _VICTIMS if pids.get(name)]
    if not living:
        return None
    name = _one_of(living, rng)
    main, children = pids[name][0], pids[name][1:]
    if not children or rng.uniform(0, 1) < _MAIN_SHARE:
        return (f"{name} main" if children else name), main
    return f"{name} child", _one_of(children, rng)


def kill(pid: int) -> bool:
    """Kill a process of a fleet, as a machine out of memory would; false where it is gone, or somebody else's."""
    try:
        process = psutil.Process(pid)
        if not _PROGRAMS & {Path(word).name for word in process.cmdline()}:
            return False
        process.kill()
    except psutil.Error:
        return False
    return True


@contextmanager
def killing(killer: Killer | None) -> Iterator[None]:
    """Kill for as long as the block lasts; nobody where there is no killer."""
    if killer is None:
        yield
        return
    thread = threading.Thread(target=killer.run, name="killer", daemon=True)
    thread.start()
    try:
        yield
    finally:
        killer.stop()
        thread.join()


def _one_of(items: Sequence[T], rng: Rng) -> T:
    return items[min(int(rng.uniform(0, len(items))), len(items) - 1)]
