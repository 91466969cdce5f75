"""The folder through which the harness and the processes of a fleet speak.

``armed/`` holds one file for each armed point. Whoever reaches the point claims the file by renaming it to
``claimed/``, so that one process alone dies of it, says in ``struck/`` who it is, and kills itself. ``census/`` holds
every name that was ever reached, ``clock/`` a step of one process's clock, or of everybody's; ``ward/`` what ails.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

#: Names the folder to the processes of a fleet; only the harness sets it.
VARIABLE = "CRASH_FOLDER"
#: Says where effects are counted.
SINK_VARIABLE = "CRASH_SINK_URL"
#: Below it: see :mod:`tests.crashing.ailments`.
WARD = "ward"
#: In place of a process: the machine, whose clock is everybody's.
EVERYBODY = "everybody"
_FOLDERS = ("armed", "claimed", "struck", "census", "hits", "clock")


@dataclass(frozen=True, slots=True)
class Arming:
    """A point at which somebody is to die.

    Attributes:
        id: Of this arming.
        point: The name, or its beginning and a ``*``.
        nth: Which passage, of all processes together, from 1.
        with_parent: The parent dies first, as a machine takes a whole family.
    """

    id: str
    point: str
    nth: int = 1
    with_parent: bool = False

    def fits(self, name: str) -> bool:
        """Whether a point of this name is meant."""
        return name == self.point or (self.point.endswith("*") and name.startswith(self.point[:-1]))


@dataclass(frozen=True, slots=True)
class Struck:
    """Who died at an armed point."""

    id: str
    point: str
    role: str
    pid: int
    parent: int


class Control:
    """The harness's side."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in _FOLDERS:
            (folder / name).mkdir(parents=True, exist_ok=True)

    def arm(self, arming: Arming) -> None:
        _write(self.folder / "armed" / arming.id, asdict(arming))

    def disarm(self, arming: Arming) -> bool:
        """Takes an arming back; False where somebody has claimed it."""
        try:
            (self.folder / "armed" / arming.id).unlink()
        except FileNotFoundError:
            return False
        return True

    def struck(self, arming: Arming) -> Struck | None:
        """Who died of it, if somebody did."""
        try:
            return Struck(**json.loads((self.folder / "struck" / arming.id).read_text()))
        except FileNotFoundError:
            return None

    def census(self) -> dict[str, set[str]]:
        """Every name that was reached, and by which kinds of process."""
        found: dict[str, set[str]] = {}
        for path in (self.folder / "census").iterdir():
            for name in path.read_text().splitlines():
                found.setdefault(name, set()).add(path.name)
        return found

    def step_clock(self, pid: int | str, offset_s: float | None) -> None:
        """Sets the clock of one process wrong, or of everybody, or right again."""
        path = self.folder / "clock" / str(pid)
        if offset_s is None:
            path.unlink(missing_ok=True)
        else:
            _write(path, offset_s)


class Trigger:
    """The side of the processes that die."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: set[str] = set()
        self._known: dict[str, Arming] = {}

    def hit(self, name: str) -> None:
        """This point is being passed; returns, unless somebody wants a death here."""
        if name not in self._seen:
            self._seen.add(name)
            self._note(name)
        for arming in self._armed():
            if arming.fits(name):
                self._strike(arming, name)

    def clock_offset_s(self) -> float:
        """How wrong the clock of this process is."""
        return sum(self._offset_s(whose) for whose in (str(os.getpid()), EVERYBODY))

    def _offset_s(self, whose: str) -> float:
        try:
            return float((self._folder / "clock" / whose).read_text())
        except (FileNotFoundError, ValueError):
            return 0.0

    def _note(self, name: str) -> None:
        path = self._folder / "census" / role()
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(handle, f"{name}\n".encode())
        finally:
            os.close(handle)

    def _armed(self) -> Iterator[Arming]:
        # A folder's time stamp is too coarse to tell two changes of one moment apart; listing it costs as little.
        for name in os.listdir(self._folder / "armed"):  # noqa: PTH208 - on each passage, and faster than a Path
            arming = self._known.get(name) or self._read(name)
            if arming is not None:
                yield arming

    def _read(self, name: str) -> Arming | None:
        if name.startswith("."):
            return None
        try:
            arming = Arming(**json.loads((self._folder / "armed" / name).read_text()))
        except FileNotFoundError:
            return None
        self._known[name] = arming
        return arming

    def _strike(self, arming: Arming, name: str) -> None:
        if not self._is_nth(arming):
            return
        try:
            (self._folder / "armed" / arming.id).rename(self._folder / "claimed" / arming.id)
        except FileNotFoundError:
            return  # taken back, or another's
        struck = Struck(arming.id, name, role(), os.getpid(), os.getppid())
        _write(self._folder / "struck" / arming.id, asdict(struck))
        if arming.with_parent and _is_main(os.getppid()):
            os.kill(os.getppid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    def _is_nth(self, arming: Arming) -> bool:
        """Counts this passage among those of all processes; whether it is the one that was asked for."""
        for number in range(1, arming.nth + 1):
            path = self._folder / "hits" / f"{arming.id}.{number}"
            try:
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            except FileExistsError:
                continue
            return number == arming.nth
        return False


def role() -> str:
    """Which process of the fleet this is, by its command line."""
    words = " ".join(sys.argv)
    worker = re.search(r" -n (\w+)@", words)
    if worker:
        return f"worker-{worker[1]}"
    return "beat" if " beat" in words else "web"


def _is_main(pid: int) -> bool:
    """Whether this is a main process of the fleet, and not what watches over all of them."""
    try:
        programs = {Path(word).name for word in psutil.Process(pid).cmdline()}
    except psutil.Error:
        return False
    return bool(programs & {"granian", "celery"})


def _write(path: Path, document: Any) -> None:
    """In one step: whoever reads sees all of it or nothing."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(document))
    draft.replace(path)
