"""A running fleet: started, watched over, described in ``run.json``, stopped."""

from __future__ import annotations

import io
import shutil
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Self

import requests
import structlog

from homing.stopped.watch import StoppedWatch
from homing.up import folder, run_file, supervision
from homing.up.options import FleetOptions
from homing.up.plan import FleetPlan, make_plan, programs
from homing.up.run_file import Running
from homing.up.supervision import Scratch
from jobs.clock import Clock
from jobs.config import loading
from jobs.storage.migrations import upgrade

_WATCH_EVERY_S = 1.0
_READY_EVERY_S = 0.2
# Workers get 20 s for running tasks (soft shutdown) and Redis ends after them; then nobody waits any longer.
_STOP_S = 60

_log = structlog.get_logger(__name__)


class Fleet:
    """One fleet: ``with Fleet.start(options, clock=clock) as fleet: ...``, or call ``stop`` yourself.

    Attributes:
        running: What ``run.json`` says, kept up to date.
    """

    def __init__(self, plan: FleetPlan, *, held: io.FileIO, clock: Clock) -> None:
        """Starts every process and returns; they may not be ready yet. Use ``start``."""
        self._plan = plan
        self._held = held
        self._clock = clock
        self._stopping = threading.Event()
        self._scratch = Scratch(folder.make_scratch(plan.data_dir))
        self._pid_files, self._command = self._prepare()
        self.running = _describe(plan)
        self._supervisor = self._start_supervisor()
        self._publish()
        self._watcher = threading.Thread(target=self._watch, name="fleet-watcher", daemon=True)
        self._watcher.start()

    @classmethod
    def start(cls, options: FleetOptions, *, clock: Clock) -> Self:
        """Brings the database to its schema and starts every process; returns before they are ready.

        Raises:
            ConfigError: Every fault of the configuration, or a fleet running from this folder already.
            Unavailable: The database cannot be reached.
        """
        held = folder.hold(options.folder)
        try:
            folder.end_leftovers(options.folder)
            plan = make_plan(options)
            upgrade(loading.load(plan.environment).settings.database_url)
            return cls(plan, held=held, clock=clock)
        except BaseException:
            held.close()
            raise

    def __enter__(self) -> Self:
        """The fleet itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Stops it."""
        self.stop()

    def is_ready(self) -> bool:
        """Whether the API can commit a webhook (``/readyz``)."""
        try:
            return requests.get(f"{self.running.url}/readyz", timeout=1).ok
        except requests.RequestException:
            return False

    def wait_ready(self, *, within_s: float, unless: threading.Event | None = None) -> bool:
        """Waits until the API is ready; false where the time is over first, or ``unless`` is set."""
        give_up_at = self._clock.monotonic() + within_s
        called_off = unless or threading.Event()
        while not self.is_ready():
            if self._clock.monotonic() > give_up_at or called_off.wait(_READY_EVERY_S):
                return False
        return True

    def stop(self) -> None:
        """Ends every process, workers first and Redis last, and takes ``run.json`` away."""
        self._stopping.set()
        self._watcher.join()
        self._supervisor.terminate()
        try:
            self._supervisor.wait(timeout=_STOP_S)
        except subprocess.TimeoutExpired:
            self._supervisor.kill()
        finally:
            self._end_the_rest()
            run_file.remove(self._plan.data_dir)
            shutil.rmtree(self._scratch.folder, ignore_errors=True)
            (self._plan.data_dir / "scratch").unlink(missing_ok=True)
            self._held.close()

    def _prepare(self) -> tuple[Mapping[str, Path], Sequence[str]]:
        metrics = self._scratch.folder / "metrics"
        metrics.mkdir()
        chosen = programs(self._plan, metrics=metrics)
        command = supervision.prepare(chosen, self._scratch, logs=self._plan.logs)
        return {program.name: self._scratch.pid_file(program.name) for program in chosen}, command

    def _start_supervisor(self) -> subprocess.Popen[bytes]:
        # A session of its own: Ctrl-C at a terminal reaches the runner alone, which then stops the rest in order.
        return subprocess.Popen(self._command, stdout=subprocess.DEVNULL, start_new_session=True)

    def _watch(self) -> None:
        stopped, fault = StoppedWatch(every_s=_WATCH_EVERY_S), ""
        while not self._stopping.wait(_WATCH_EVERY_S):
            try:
                self._look(stopped)
                fault = ""
            except Exception as error:  # noqa: BLE001 - a full disk, say: nobody else restarts the supervisor
                if fault != (fault := f"{type(error).__name__}: {error}"):
                    _log.warning("the fleet could not be looked after", error=fault)

    def _look(self, stopped: StoppedWatch) -> None:
        if self._supervisor.poll() is not None:
            self._supervisor = self._start_supervisor()
        self._publish()
        stopped.look([self._supervisor.pid, *chain.from_iterable(self.running.pids.values())])

    def _publish(self) -> None:
        self.running = replace(self.running, pids=run_file.living_pids(self._pid_files))
        if self.running != run_file.read(self._plan.data_dir):
            run_file.write(self.running, self._plan.data_dir)

    def _end_the_rest(self) -> None:
        self._supervisor.wait()
        for path in self._pid_files.values():
            supervision.end_group(path)


def _describe(plan: FleetPlan) -> Running:
    database_url = loading.load(plan.environment).settings.database_url
    user, _, password = plan.flower_auth.partition(":")
    return Running(
        url=plan.url,
        api_key=folder.api_key(plan.data_dir, database_url),
        flower_url=plan.flower_url,
        flower_user=user if plan.flower_url else None,
        flower_password=password if plan.flower_url else None,
        simulator_url=plan.simulator_url,
    )
