"""Puts the simulated provider together; the web app only speaks for it."""

from __future__ import annotations

import threading

from homing.simulator.callbacks import Callbacks
from homing.simulator.config import SimulatorConfig
from homing.simulator.desk import Desk
from homing.simulator.files import FileStore
from homing.simulator.ledger import Ledger
from homing.simulator.life import Life
from homing.simulator.plan import FaultPlan
from homing.simulator.pool import Pool
from homing.simulator.run import Run
from homing.simulator.run_book import RunBook
from homing.simulator.scheduler import Scheduler
from homing.simulator.webhooks import Sender, Spawn
from jobs.clock import Clock, SystemClock
from jobs.ids import new_token

_WORKERS = 4
# A receiver that hangs holds a sender for seconds; the others must not wait for it.
_SENDERS = 24


class Provider:
    """One provider with its runs, books and threads.

    Args:
        config: what it was told.
        clock: a fake one in tests.
        spawn: runs work and deliveries; default: pools of threads.
        plan: faults chosen by hand; default: as configured.
    """

    def __init__(
        self,
        config: SimulatorConfig,
        *,
        clock: Clock | None = None,
        spawn: Spawn | None = None,
        plan: FaultPlan | None = None,
    ) -> None:
        """See the class."""
        self.config = config
        self.clock = clock or SystemClock()
        self.base_url = (config.public_url or f"http://{config.host}:{config.port}").rstrip("/")
        self.closing = threading.Event()
        self._workers = Pool(_WORKERS, "simulator-work")
        self._senders = Pool(_SENDERS, "simulator-send")
        self.scheduler = Scheduler(self.clock)
        self.ledger = Ledger(self.clock)
        self.runs = RunBook(self.clock)
        self.files = FileStore(self.clock, signing_key=new_token(), ttl=config.artifact_ttl)
        self.plan = plan or FaultPlan.for_inputs(config.seed, config.plan, config.faults)
        self.desk = Desk(config, plan=self.plan, runs=self.runs, ledger=self.ledger)
        self._sender = self._build_sender(spawn or self._senders.spawn)
        self.life = self._build_life(spawn or self._workers.spawn)

    def _build_sender(self, spawn: Spawn) -> Sender:
        return Sender(self.config, clock=self.clock, scheduler=self.scheduler, ledger=self.ledger, spawn=spawn)

    def _build_life(self, spawn: Spawn) -> Life:
        self.callbacks = Callbacks(
            self.config, clock=self.clock, ledger=self.ledger, sender=self._sender, describe=self.describe
        )
        return Life(
            self.config,
            scheduler=self.scheduler,
            runs=self.runs,
            files=self.files,
            announce=self.callbacks.announce,
            spawn=spawn,
        )

    def start(self) -> None:
        """Let time drive the runs."""
        self.scheduler.start()

    def close(self) -> None:
        """Stop at once: what was on its way is forgotten, as when a provider's machine dies."""
        self.closing.set()
        self.scheduler.stop()
        self._workers.close()
        self._senders.close()
        self._sender.close()

    def describe(self, run: Run) -> dict[str, object]:
        """Return a run as a client sees it now."""
        outcome = run.outcome
        return {
            "id": run.id,
            "status": run.status.value,
            "progress": run.progress(self.clock.monotonic()),
            "output": outcome.output if outcome else None,
            "error": outcome.error if outcome else None,
            "artifacts": self.files.describe(run, base_url=self.base_url),
            "cost": outcome.cost if outcome else None,
        }
