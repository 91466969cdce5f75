"""One tick: lock, epoch, the sweeps until their bound, heartbeats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import structlog

from jobs.broker import PING, RELAY
from jobs.clock import Clock
from jobs.core.errors import Stale
from jobs.services.runtime import Runtime
from jobs.storage.premise import Premise, always
from jobs.telemetry import SWEEP_S
from reconciler import heartbeats, ping
from reconciler.counts import Counts, Sweep
from reconciler.epochs import Epoch, begin
from reconciler.lock import LockStore, SweepLock
from reconciler.schedule import Tick, find_tick

_POLLS = "polls"  # the sweep that brings jobs home when nobody calls back: its good end is what the world is told
_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Keeper:
    """Renews a tick's lock before a pass, where a quarter of its length has gone by: most ticks find nothing to do."""

    lock: SweepLock
    clock: Clock
    renewed_s: float

    def keeps(self) -> bool:
        """False where the lock has been lost; a loss not seen yet is the epoch's to stop."""
        now_s = self.clock.monotonic()
        if now_s - self.renewed_s < self.lock.ttl.total_seconds() / 4:
            return True
        self.renewed_s = now_s
        return self.lock.renew()


@dataclass(slots=True)
class Reconciler:
    """What a process needs to sweep; built after any fork.

    Attributes:
        runtime: The process's parts.
        locks: Where ticks are locked.
        sweeps: By the names the schedule uses.
    """

    runtime: Runtime
    locks: LockStore
    sweeps: Mapping[str, Sweep]

    def tick(self, name: str) -> Mapping[str, Counts]:
        """Runs the sweeps of a tick, unless somebody else is at it.

        Returns:
            The counts of each sweep that came to a good end.
        """
        tick = find_tick(name)
        if tick is None:
            _log.warning("no such tick in this release", tick=name)
            return {}
        return self.run(tick)

    def run(self, tick: Tick) -> Mapping[str, Counts]:
        """See :meth:`tick`."""
        lock = SweepLock(self.locks, tick.name, tick.lock_ttl)
        with _held(lock) as held:
            if not held:
                return {}
            done = self._sweep_all(tick, lock)
        if self.runtime.settings.heartbeat_url and _POLLS in done and ping.is_ping_due(self.runtime.database):
            self.runtime.broker.publish(PING)
        return done

    def _sweep_all(self, tick: Tick, lock: SweepLock) -> Mapping[str, Counts]:
        epoch = begin(self.runtime.database, tick.name)
        keeper = _Keeper(lock, self.runtime.clock, self.runtime.clock.monotonic())
        done: dict[str, Counts] = {}
        try:
            for name in tick.sweeps:
                counts = self._sweep_safely(name, tick, keeper, epoch)
                if counts is not None:
                    done[name] = counts
            self._beat(tick, done, epoch)
        except Stale as reason:
            _log.warning("sweep superseded", tick=tick.name, reason=str(reason))
        return done

    def _sweep_safely(self, name: str, tick: Tick, keeper: _Keeper, epoch: Epoch) -> Counts | None:
        """One sweep; what goes wrong in it stops neither the others nor the next tick, and leaves no heartbeat."""
        try:
            with SWEEP_S.labels(name).time():
                counts = self._sweep(self.sweeps[name], tick, keeper, epoch)
        except Stale:
            raise
        except Exception:  # noqa: BLE001 - each sweep stands alone: a broken one must not keep the others from their work
            _log.exception("sweep failed", sweep=name)
            return None
        if counts:
            _log.info("swept", sweep=name, handled=counts.handled, rung=counts.rung, failed=counts.failed)
        return counts

    def _sweep(self, sweep: Sweep, tick: Tick, keeper: _Keeper, epoch: Epoch) -> Counts:
        ends_at_s = self.runtime.clock.monotonic() + tick.bound.total_seconds()
        total = Counts(more=True)
        while total.more:
            if not keeper.keeps():
                raise Stale("the lock has been lost")
            total += sweep.run_once(self.runtime, epoch)
            if self.runtime.clock.monotonic() >= ends_at_s:
                break
        return total

    def _beat(self, tick: Tick, done: Mapping[str, Counts], epoch: Epoch) -> None:
        if not done:
            return
        beat(self.runtime, {f"sweep.{name}": tick.period for name in done}, premise=epoch)


def beat(runtime: Runtime, periods: Mapping[str, timedelta], *, premise: Premise = always) -> None:
    """Leaves heartbeats, in a transaction of their own, and rings for what they have to tell.

    Raises:
        Stale: The premise failed.
    """
    with runtime.database.write() as tx:
        premise(tx)
        recovered = heartbeats.beat(tx, periods)
    for name in recovered:
        _log.info("heartbeat recovered", name=name)
    if recovered:
        runtime.broker.publish(RELAY)


@contextmanager
def _held(lock: SweepLock) -> Iterator[bool]:
    taken = lock.acquire()
    try:
        yield taken
    finally:
        lock.release()


_current: Reconciler | None = None


def install(reconciler: Reconciler | None) -> None:
    """Makes a reconciler the process's own; Celery tasks find it by :func:`current`."""
    global _current  # noqa: PLW0603 - one per process is the point
    _current = reconciler


def current() -> Reconciler:
    """The process's reconciler.

    Raises:
        RuntimeError: ``install`` was not called in this process.
    """
    if _current is None:
        raise RuntimeError("no reconciler in this process: homing.worker installs it")
    return _current
