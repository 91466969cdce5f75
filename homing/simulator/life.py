"""The life of a run: queued, at work, ended; each step told to the client."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeAlias

from homing.simulator.config import SimulatorConfig
from homing.simulator.faults import Fault
from homing.simulator.files import FileStore
from homing.simulator.models import MODELS, BadInputError, Input
from homing.simulator.models.fields import read_number
from homing.simulator.run import Outcome, Run, Status
from homing.simulator.run_book import RunBook
from homing.simulator.scheduler import Scheduler
from homing.simulator.webhooks import Spawn

log = logging.getLogger(__name__)

#: How long a run waits in the queue, in seconds: long enough that somebody may see it there.
QUEUE_S = 0.1

DEFAULT_DURATION_S = 1.0
MAX_DURATION_S = 86_400.0

#: Price of a run and of each of its seconds, in dollars.
BASE_COST, COST_PER_S = 0.01, 0.002

Announce: TypeAlias = Callable[[Run, Status], None]


class Life:
    """Leads runs through their states."""

    def __init__(
        self,
        config: SimulatorConfig,
        *,
        scheduler: Scheduler,
        runs: RunBook,
        files: FileStore,
        announce: Announce,
        spawn: Spawn,
    ) -> None:
        """`spawn` does the work of the models, `announce` tells the client."""
        self._scale = config.time_scale
        self._scheduler = scheduler
        self._runs = runs
        self._files = files
        self._announce = announce
        self._spawn = spawn

    def enqueue(self, run: Run) -> None:
        """Let a new run begin by itself."""
        self._scheduler.after(QUEUE_S * self._scale, lambda: self._spawn(lambda: self._begin(run)))

    def complete_now(self, run: Run) -> None:
        """Lead a new run to its end in this thread, as a provider does that has the result at hand."""
        if self._runs.begin(run):
            self._announce(run, Status.PROCESSING)
            self._finish(run)

    def cancel(self, run: Run) -> bool:
        """End a run now; false where it has ended before. Some go on all the same."""
        if run.faults.cancel is Fault.CANCEL_IGNORED:
            return not run.status.is_terminal
        outcome = Outcome(Status.CANCELED, cost=BASE_COST if run.status is Status.PROCESSING else 0.0)
        return self._settle(run, outcome)

    def _begin(self, run: Run) -> None:
        if self._runs.begin(run):
            self._announce(run, Status.PROCESSING)
            self._scheduler.after(run.duration_s, lambda: self._spawn(lambda: self._finish(run)))

    def _finish(self, run: Run) -> None:
        if not run.status.is_terminal:
            self._settle(run, work(run, price=price_of(run.duration_s / self._scale)))

    def _settle(self, run: Run, outcome: Outcome) -> bool:
        # The files are there before anybody can learn of them.
        self._files.put(run.id, outcome.files)
        if not self._runs.settle(run, outcome):
            return False
        self._announce(run, outcome.status)
        return True


def read_duration_s(fields: Input) -> float:
    """How long a run of this input works, in seconds; a bad duration fails the run later, not the submit."""
    try:
        return read_number(fields, "duration_s", default=DEFAULT_DURATION_S, low=0, high=MAX_DURATION_S)
    except BadInputError:
        return 0.0


def price_of(duration_s: float) -> float:
    """What a run of this length costs, in dollars."""
    return round(BASE_COST + COST_PER_S * duration_s, 4)


def work(run: Run, *, price: float) -> Outcome:
    """Do the work of a run's model; whatever it cannot do is the run's failure."""
    fields = run.order.input
    if fields.get("fail"):
        return _failure("generation_failed", _wished_message(fields["fail"]))
    try:
        read_number(fields, "duration_s", default=DEFAULT_DURATION_S, low=0, high=MAX_DURATION_S)
        result = MODELS[run.order.model](fields)
    except BadInputError as error:
        return _failure("invalid_input", str(error))
    except Exception:  # a defect of a model must end the run, not leave it at work for ever
        log.exception("model %s broke on run %s", run.order.model, run.id)
        return _failure("internal", "the model broke on this input")
    return Outcome(Status.SUCCEEDED, output=result.output, files=result.files, cost=price)


def _wished_message(fail: object) -> str:
    return fail if isinstance(fail, str) else "the model gave up, as the input asked it to"


def _failure(code: str, message: str) -> Outcome:
    return Outcome(Status.FAILED, error={"code": code, "message": message})
