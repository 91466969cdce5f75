"""Everything that is done to a fleet besides deaths at a point."""

from __future__ import annotations

import fcntl
import os
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random

import psutil

from homing.demo.killing import kill
from tests.crashing.control import EVERYBODY
from tests.crashing.services import WiredPostgres
from tests.crashing.stage import PROCESSES, Stage
from tests.crashing.wire import Mode, Wire


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of trouble.

    Attributes:
        cause: Does it, and puts it right again; returns the processes it killed.
        weight: How often it comes, against the others.
    """

    name: str
    cause: Callable[[Stage, Random], int]
    weight: int = 1


def _kill_one(name: str, *, main: bool) -> Callable[[Stage, Random], int]:
    def cause(stage: Stage, rng: Random) -> int:
        pids = stage.pids(name)
        chosen = pids[:1] if main else pids[1:]
        return int(bool(chosen) and kill(rng.choice(chosen)))

    return cause


def _restart_redis(stage: Stage, rng: Random) -> int:
    stage.redis.kill()
    time.sleep(rng.uniform(0, 2))
    stage.redis.start()
    return 1


def _lose_redis(stage: Stage, rng: Random) -> int:
    stage.redis.kill()
    stage.redis.forget()
    time.sleep(rng.uniform(0, 1))
    stage.redis.start()
    return 1


def _freeze_redis(stage: Stage, rng: Random) -> int:
    stage.redis.freeze()
    time.sleep(rng.uniform(1, 5))
    stage.redis.thaw()
    return 0


def _flush_redis(stage: Stage, rng: Random) -> int:
    del rng
    stage.redis.flush()
    return 0


def _drop_redis_clients(stage: Stage, rng: Random) -> int:
    del rng
    stage.redis.drop_clients()
    return 0


def _on_redis(mode: Mode, *, cut: bool = True) -> Callable[[Stage, Random], int]:
    def cause(stage: Stage, rng: Random) -> int:
        _disturb(stage.redis.wire, mode, rng, cut=cut)
        return 0

    return cause


def _on_postgres(mode: Mode, *, cut: bool = True) -> Callable[[Stage, Random], int]:
    def cause(stage: Stage, rng: Random) -> int:
        assert stage.postgres is not None
        _disturb(stage.postgres.wire, mode, rng, cut=cut)
        return 0

    return cause


def _disturb(wire: Wire, mode: Mode, rng: Random, *, cut: bool) -> None:
    """For some seconds; what was swallowed is lost, so those connections end with the trouble."""
    wire.set(mode, delay_s=rng.uniform(0.02, 0.2))
    if mode is Mode.REFUSING:
        wire.cut()
    time.sleep(rng.uniform(1, 5))
    wire.heal(cut=cut)


def _restart_postgres(end: Callable[[WiredPostgres], None]) -> Callable[[Stage, Random], int]:
    def cause(stage: Stage, rng: Random) -> int:
        assert stage.postgres is not None
        end(stage.postgres)
        time.sleep(rng.uniform(0, 1))
        stage.postgres.start()
        return 1

    return cause


def _kill_backend(stage: Stage, rng: Random) -> int:
    del rng
    assert stage.postgres is not None
    return int(stage.postgres.kill_backend())


def _hold_writer_lock(stage: Stage, rng: Random) -> int:
    """As a process would that hangs in a transaction: nobody can write."""
    path = stage.folder / "homing.db.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        time.sleep(rng.uniform(1, 4))
    finally:
        os.close(descriptor)
    return 0


def _double_beat(stage: Stage, rng: Random) -> int:
    pids = stage.pids("beat")
    with suppress(psutil.Error):
        beat = psutil.Process(pids[0])
        twin = subprocess.Popen(beat.cmdline(), env=beat.environ(), stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        time.sleep(rng.uniform(5, 9))
        twin.kill()
        twin.wait()
    return 0


def _step_one_clock(by_s: float) -> Callable[[Stage, Random], int]:
    """Of one child, as of a machine among several."""

    def cause(stage: Stage, rng: Random) -> int:
        children = [pid for name in PROCESSES for pid in stage.pids(name)[1:]]
        if children:
            _step_clock(stage, rng, rng.choice(children), by_s)
        return 0

    return cause


def _step_all_clocks(by_s: float) -> Callable[[Stage, Random], int]:
    """As of the machine itself, which all processes live on."""

    def cause(stage: Stage, rng: Random) -> int:
        _step_clock(stage, rng, EVERYBODY, by_s)
        return 0

    return cause


def _step_clock(stage: Stage, rng: Random, whose: int | str, by_s: float) -> None:
    stage.control.step_clock(whose, by_s)
    time.sleep(rng.uniform(2, 5))
    stage.control.step_clock(whose, None)


def _deaths(name: str) -> list[Fault]:
    if name == "beat":
        return [Fault("beat", _kill_one(name, main=True))]
    child, main = _kill_one(name, main=False), _kill_one(name, main=True)
    return [Fault(f"{name} child", child, 3), Fault(f"{name} main", main)]


KILLS: tuple[Fault, ...] = tuple(fault for name in PROCESSES for fault in _deaths(name))
_EVERYWHERE: tuple[Fault, ...] = (
    Fault("Redis killed and restarted", _restart_redis, 2),
    Fault("Redis restarted empty", _lose_redis),
    Fault("Redis frozen", _freeze_redis, 2),
    Fault("Redis flushed", _flush_redis, 2),
    Fault("Redis hangs up on its clients", _drop_redis_clients, 2),
    Fault("Redis refuses", _on_redis(Mode.REFUSING)),
    Fault("Redis slow", _on_redis(Mode.SLOW, cut=False)),
    Fault("half-open sockets to Redis", _on_redis(Mode.SWALLOWING)),
    Fault("beat doubled", _double_beat),
)
#: Longer than any lease of work. On SQLite the process's clock is the database's: what is written by it lies so far in
#: the future or the past, and a longer step only makes everybody wait for it.
_BEYOND_LEASES_S = 25.0
_SQLITE: tuple[Fault, ...] = (
    Fault("SQLite's writer lock held", _hold_writer_lock, 4),
    Fault("the clock of the machine 25 s ahead", _step_all_clocks(_BEYOND_LEASES_S)),
    Fault("the clock of the machine 25 s behind", _step_all_clocks(-_BEYOND_LEASES_S)),
    Fault("the clock of one process 25 s ahead", _step_one_clock(_BEYOND_LEASES_S)),
    Fault("the clock of one process 25 s behind", _step_one_clock(-_BEYOND_LEASES_S)),
)
_POSTGRESQL: tuple[Fault, ...] = (
    Fault("PostgreSQL killed and restarted", _restart_postgres(WiredPostgres.kill), 2),
    Fault("PostgreSQL shut down at once and restarted", _restart_postgres(WiredPostgres.quit), 2),
    Fault("a PostgreSQL session's process killed", _kill_backend, 2),
    Fault("PostgreSQL refuses", _on_postgres(Mode.REFUSING), 2),
    Fault("PostgreSQL slow", _on_postgres(Mode.SLOW, cut=False), 2),
    Fault("half-open sockets to PostgreSQL", _on_postgres(Mode.SWALLOWING), 2),
    Fault("the clock of one process an hour ahead", _step_one_clock(3600)),
    Fault("the clock of one process an hour behind", _step_one_clock(-3600)),
)


def troubles(kind: str) -> tuple[Fault, ...]:
    """What can befall the surroundings of a fleet on this database."""
    return _EVERYWHERE + (_POSTGRESQL if kind == "postgresql" else _SQLITE)


def draw(faults: Sequence[Fault], rng: Random) -> Fault:
    """One of them, by weight."""
    return rng.choices(faults, weights=[fault.weight for fault in faults])[0]


def draw_rarest(faults: Sequence[Fault], rng: Random, had: Counter[str]) -> Fault:
    """The one that has come least often for its weight, so that none is left to chance; counts it."""
    chosen = min(faults, key=lambda fault: (had[fault.name] // fault.weight, rng.random()))
    had[chosen.name] += 1
    return chosen
