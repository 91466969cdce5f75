"""A provider in memory: it bills, remembers keys and searches like a real one, and fails by script."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from jobs.clock import Clock
from jobs.core.errors import UnknownOutcome, Unusable
from jobs.core.observations import Json
from jobs.core.states import JobState, is_terminal
from jobs.providers.port import (
    AlreadyFinished,
    Capabilities,
    Gone,
    KeyReused,
    KeyUse,
    Report,
    SubmitRequest,
    WebhookReport,
)

T = TypeVar("T")
#: Stands around a call: may do it, or not, and answer or raise what it likes.
Effect = Callable[[Callable[[], Any]], Any]

REPLAY = Capabilities(keys=KeyUse.REPLAY, key_window=timedelta(hours=24))
WITH_SEARCH = replace(REPLAY, search=True)
REJECT = Capabilities(keys=KeyUse.REJECT, key_window=timedelta(hours=24))
REJECT_WITH_SEARCH = replace(REJECT, search=True)
NO_KEYS = Capabilities()
NO_KEYS_WITH_SEARCH = Capabilities(search=True)


class Killed(BaseException):
    """The process dies here; nothing of ours may catch it."""


def raises(error: BaseException) -> Effect:
    """The call is not carried out."""

    def effect(_call: Callable[[], Any]) -> Any:
        raise error

    return effect


def loses(error: BaseException | None = None) -> Effect:
    """The call is carried out, and its answer lost."""

    def effect(call: Callable[[], Any]) -> Any:
        call()
        raise error or UnknownOutcome("no answer came")

    return effect


def answers(value: Any) -> Effect:
    """The call is not carried out; this is answered."""
    return lambda _call: value


def then(act: Callable[[], object]) -> Effect:
    """The call is carried out; something happens before its answer is received."""

    def effect(call: Callable[[], Any]) -> Any:
        answer = call()
        act()
        return answer

    return effect


@dataclass
class FakeRun:
    """A run that was billed."""

    id: str
    key: str
    token: str
    begun_at: datetime
    report: Report

    @property
    def state(self) -> JobState | None:
        return self.report.state


@dataclass
class FakeProvider:
    """See the module.

    Attributes:
        calls: What was asked, in order: (method, argument).
        list_lag: How long a new run stays out of the search.
    """

    clock: Clock
    capabilities: Capabilities = REPLAY
    list_lag: timedelta = timedelta(0)
    runs: dict[str, FakeRun] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)
    requests: list[SubmitRequest] = field(default_factory=list)
    _scripts: dict[str, deque[Effect | None]] = field(default_factory=dict)
    _numbers: Any = field(default_factory=lambda: itertools.count(1))

    def script(self, method: str, *effects: Effect | None) -> None:
        """What happens to the next calls of a method, one after another; None: nothing special."""
        self._scripts.setdefault(method, deque()).extend(effects)

    def always(self, method: str, effect: Effect) -> None:
        """What happens to every further call of a method."""
        self._scripts[method] = deque(itertools.repeat(effect, 10_000))

    def heal(self, method: str) -> None:
        """Forgets the script of a method."""
        self._scripts.pop(method, None)

    def count(self, method: str) -> int:
        """How often a method was called."""
        return sum(name == method for name, _argument in self.calls)

    def set(self, run: str, state: JobState | None, **facts: Any) -> None:
        """Moves a run on."""
        self.runs[run].report = replace(self.runs[run].report, state=state, **facts)

    def finish(self, run: str, **facts: Any) -> None:
        """Ends a run well."""
        self.set(run, JobState.SUCCEEDED, **{"output": {"frames": 24}, "cost": 0.02, **facts})

    @property
    def only_run(self) -> FakeRun:
        """The run, of which there must be one."""
        (run,) = self.runs.values()
        return run

    # The port ------------------------------------------------------------------------------------------

    def submit(self, request: SubmitRequest) -> Report:
        self.requests.append(request)
        return self._do("submit", request.idempotency_key, lambda: self._submit(request))

    def _submit(self, request: SubmitRequest) -> Report:
        known = self._known(request.idempotency_key)
        if known is not None and self.capabilities.keys is KeyUse.REJECT:
            raise KeyReused("seen before")
        if known is not None and self.capabilities.keys is KeyUse.REPLAY:
            return replace(known.report, state=None, output=None)
        return self.begin(key=request.idempotency_key, token=request.token).report

    def begin(self, *, key: str, token: str) -> FakeRun:
        """Begins a run: from here on it is billed."""
        run = f"p-{next(self._numbers)}"
        self.runs[run] = FakeRun(run, key, token, self.clock.now(), Report(run, JobState.PENDING))
        return self.runs[run]

    def _known(self, key: str) -> FakeRun | None:
        window = self.capabilities.key_window
        same = [run for run in self.runs.values() if run.key == key]
        if not same or (window is not None and self.clock.now() >= same[0].begun_at + window):
            return None
        return same[0]

    def find(self, *, idempotency_key: str, token: str) -> tuple[Report, ...]:
        return self._do("find", token, lambda: self._find(idempotency_key, token))

    def _find(self, key: str, token: str) -> tuple[Report, ...]:
        listed = [run for run in self.runs.values() if self.clock.now() - run.begun_at >= self.list_lag]
        by_token = tuple(run.report for run in listed if run.token == token)
        return by_token or tuple(run.report for run in listed if run.key == key)

    def status(self, provider_job_id: str) -> Report:
        return self._do("status", provider_job_id, lambda: self._get(provider_job_id).report)

    def cancel(self, provider_job_id: str) -> Report | None:
        return self._do("cancel", provider_job_id, lambda: self._cancel(provider_job_id))

    def _cancel(self, provider_job_id: str) -> Report:
        run = self._get(provider_job_id)
        if run.state is not None and is_terminal(run.state):
            raise AlreadyFinished(f"it is {run.state}")
        self.set(provider_job_id, JobState.CANCELED)
        return run.report

    def _get(self, provider_job_id: str) -> FakeRun:
        if provider_job_id not in self.runs:
            raise Gone("no such run")
        return self.runs[provider_job_id]

    def read_webhook(self, body: Json, headers: Mapping[str, str]) -> WebhookReport:
        if not isinstance(body, Mapping):
            raise Unusable("an event is a JSON object")
        run, status = body.get("job"), body.get("status")
        if not isinstance(run, str) or not isinstance(status, str):
            return WebhookReport(None, ignored_because="names no job")
        return WebhookReport(Report(run, JobState(status)))

    def _do(self, method: str, argument: str, call: Callable[[], T]) -> T:
        self.calls.append((method, argument))
        script = self._scripts.get(method)
        effect = script.popleft() if script else None
        result: T = effect(call) if effect is not None else call()
        return result
