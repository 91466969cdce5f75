"""What becomes of a submit, a status read and a cancel, whatever dialect it came in: faults, ledger, answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from flask import Response, jsonify, request

from homing.simulator import answers
from homing.simulator.desk import Decision, Verdict
from homing.simulator.faults import Fault
from homing.simulator.provider import Provider
from homing.simulator.run import Order, Run

#: How long a hanging read is held, in seconds: past a poller's patience, short of a demo's.
HANG_S = 4.0


class SayError(Protocol):
    """A refusal in a dialect's shape."""

    def __call__(self, status: int, code: str, message: str) -> Response:
        """Return it."""
        ...


@dataclass(frozen=True, slots=True)
class Wording:
    """How a dialect says what the provider decided.

    Attributes:
        dialect: its name; none: our own.
        accepted: the answer to a submit; the flag says that its key was used before.
        describe: a run as its client sees it now.
        error: a refusal.
        status_field: where `describe` has the status.
        unknown_words: statuses that no client of this dialect knows.
    """

    dialect: str | None
    accepted: Callable[[Run, bool], Response]
    describe: Callable[[Run], Mapping[str, object]]
    error: SayError
    status_field: str = "status"
    unknown_words: tuple[str, ...] = answers.UNKNOWN_WORDS


# Submit --------------------------------------------------------------------------------------------------


def submit(provider: Provider, order: Order, *, wording: Wording) -> Response:
    """Take an order, or refuse it; the answer may get lost."""
    decision = provider.desk.submit(order)
    if decision.verdict is Verdict.ACCEPTED and decision.run is not None:
        _set_going(provider, decision.run)
    answer = _answer_submit(decision, wording)
    lost = decision.fault is Fault.LOST_ANSWER
    provider.ledger.record_submit(
        key=order.key,
        reference=order.reference,
        run_id=None if decision.run is None else decision.run.id,
        answer=None if lost else answer.status_code,
        fault=decision.fault,
    )
    return answers.cut_connection(request.environ) if lost else answer


def _set_going(provider: Provider, run: Run) -> None:
    if run.faults.webhook is Fault.EARLY:
        provider.life.complete_now(run)
    else:
        provider.life.enqueue(run)


def _answer_submit(decision: Decision, wording: Wording) -> Response:
    run = decision.run
    if decision.verdict is Verdict.KEY_REUSED or run is None:
        if decision.fault is None:
            return wording.error(422, "idempotency_key_reused", "this Idempotency-Key was used before")
        status = 429 if decision.fault is Fault.SUBMIT_429 else 503
        return _busy(wording, status, "busy", retry_after=status == 429)
    return wording.accepted(run, decision.verdict is Verdict.REPLAYED)


# Read ----------------------------------------------------------------------------------------------------


def read(provider: Provider, run_id: str, *, wording: Wording) -> Response:
    """Show a run, or suffer one of its faults."""
    run = find_run(provider, run_id, dialect=wording.dialect)
    if run is None:
        provider.ledger.record_read(run_id=run_id, answer=404)
        return wording.error(404, "not_found", "there is no such job")
    earlier = provider.runs.count_read(run)
    fault = run.faults.status if earlier < run.faults.times else None
    if fault is Fault.STATUS_HANG:
        return _hang(provider, run)
    answer = _answer_read(run, fault=fault, wording=wording)
    provider.ledger.record_read(run_id=run.id, answer=answer.status_code, fault=fault)
    return answer


def find_run(provider: Provider, run_id: str, *, dialect: str | None) -> Run | None:
    """Return a run of one dialect: accounts at different providers do not see each other."""
    run = provider.runs.find(run_id)
    return run if run is not None and run.order.dialect == dialect else None


def _answer_read(run: Run, *, fault: Fault | None, wording: Wording) -> Response:
    match fault:
        case Fault.STATUS_5XX:
            status = answers.SERVER_ERRORS[int(run.faults.jitter * len(answers.SERVER_ERRORS))]
            return _busy(wording, status, "internal", retry_after=False)
        case Fault.STATUS_429:
            return _busy(wording, 429, "rate_limited", retry_after=True)
        case Fault.STATUS_HTML:
            return answers.gateway_page()
        case Fault.STATUS_UNKNOWN:
            words = wording.unknown_words
            return jsonify({**wording.describe(run), wording.status_field: words[int(run.faults.jitter * len(words))]})
        case _:
            return jsonify(wording.describe(run))


def _hang(provider: Provider, run: Run) -> Response:
    provider.ledger.record_read(run_id=run.id, answer=None, fault=Fault.STATUS_HANG)
    provider.closing.wait(HANG_S * provider.config.time_scale)
    return answers.cut_connection(request.environ)


def _busy(wording: Wording, status: int, code: str, *, retry_after: bool) -> Response:
    answer = wording.error(status, code, "try again later")
    if retry_after:
        answer.headers["Retry-After"] = str(answers.RETRY_AFTER_S)
    return answer


# Cancel --------------------------------------------------------------------------------------------------


def cancel(
    provider: Provider,
    run_id: str,
    *,
    wording: Wording,
    canceled: Callable[[Run], Response],
    finished: Callable[[Run], Response],
    act: Callable[[Run], bool] | None = None,
) -> Response:
    """End a run.

    Args:
        provider: where it runs.
        run_id: the run.
        wording: of the dialect.
        canceled: the answer where the run takes it.
        finished: the answer where the run had ended.
        act: ends a run, now or later, and says whether it takes it; default: now.
    """
    run = find_run(provider, run_id, dialect=wording.dialect)
    if run is None:
        answer = wording.error(404, "not_found", "there is no such job")
    elif (act or provider.life.cancel)(run):
        answer = canceled(run)
    else:
        answer = finished(run)
    provider.ledger.record_cancel(run_id=run_id, answer=answer.status_code)
    return answer
