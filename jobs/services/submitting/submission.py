"""Submitting a job, so that nothing is ever paid for twice.

The attempt, its key and its callback token were committed with the job. Here ``sending_at`` is committed just before
the request leaves, and whoever finds it set knows that the request may have arrived: :mod:`.submitting.plan`
says what may be done then. A process that dies anywhere in here leaves a lease that ends and a due time that stays,
so the next claim goes on from what is committed.
"""

from __future__ import annotations

from dataclasses import replace

import structlog

from jobs.core.errors import JobsError, Transient
from jobs.core.observations import ReviewReason
from jobs.providers.port import Report, SubmitRequest
from jobs.services.accounts.spending import find_overspent
from jobs.services.alarms import alarm_columns
from jobs.services.output.streams import ring_reader
from jobs.services.runtime import Runtime
from jobs.services.submitting.answers import Answer, Submit, SubmitRecord, Submitted, sent_of
from jobs.services.submitting.plan import SubmitStep, next_step
from jobs.services.work import Work, begin_work, keep, ring_relay
from jobs.storage.attempts import get_attempt, update_attempt
from jobs.storage.database import Transaction
from jobs.storage.jobs import Row, update_job
from jobs.telemetry import span

_log = structlog.get_logger(__name__)


def submit_job(runtime: Runtime, job_id: str, lease_token: str | None = None) -> Submitted:
    """Does the next thing about a job's submit: sends it, asks for it, or asks a person.

    Args:
        runtime: The process's parts.
        job_id: The job.
        lease_token: Of the claim that sent the message; None: the job is claimed here, if it is free and due.

    Raises:
        Unavailable: The database is away; what was committed stands, and the sweep comes back to it.
    """
    with span("submit_job", clock=runtime.clock, job=job_id):
        with runtime.database.write() as tx:
            begun = _begin(tx, runtime, job_id=job_id, lease_token=lease_token)
        if isinstance(begun, Submitted):
            ring_relay(runtime, begun is not Submitted.NOTHING)
            return begun
        with keep(runtime, begun.work):
            answer = _perform(runtime, begun)
            result, event_ids = runtime.database.insist(lambda tx: _record(tx, runtime, begun, answer))
        _log_answer(begun, answer, result)
        _wake(runtime, begun, answer)
        ring_relay(runtime, event_ids)
        return result


def _record(tx: Transaction, runtime: Runtime, submit: Submit, answer: Answer) -> tuple[Submitted, list[str]]:
    record = SubmitRecord(tx, runtime, submit)
    return record.write(answer), record.event_ids


def _begin(tx: Transaction, runtime: Runtime, *, job_id: str, lease_token: str | None) -> Submit | Submitted:
    work = begin_work(tx, runtime, "submit", job_id=job_id, lease_token=lease_token)
    if work is None:
        return Submitted.NOTHING
    attempt = get_attempt(tx, job_id, work.attempt)
    submit = Submit(work, attempt, _step_of(tx, work, attempt))
    if submit.step is SubmitStep.SEND and work.job["cancel_requested_at"] is not None:
        return SubmitRecord(tx, runtime, submit).cancel()
    if submit.step is SubmitStep.WAIT:
        return SubmitRecord(tx, runtime, submit).wait()
    if submit.step is SubmitStep.SEND and not attempt["beyond_budget"]:
        overspent = find_overspent(tx, work.entry)
        if overspent is not None:
            return SubmitRecord(tx, runtime, submit).hold(overspent)
        _restart_clock(tx, runtime, work)
    return Submit(work, _mark_try(tx, submit), submit.step)


def _restart_clock(tx: Transaction, runtime: Runtime, work: Work) -> None:
    """What waited for its provider's budget is sent at last: its time begins now."""
    job = work.job
    if job["review_reason"] == ReviewReason.BUDGET:
        policy, forecasts = work.entry.policy, runtime.observer.forecasts
        update_job(tx, job, alarm_columns(tx, forecasts, policy, job=job, start=tx.now))


def _step_of(tx: Transaction, work: Work, attempt: Row) -> SubmitStep:
    if work.job["adopt"] is not None:
        return SubmitStep.ADOPT
    return next_step(sent_of(work.job, attempt), work.entry.adapter.capabilities, now=tx.now)


def _mark_try(tx: Transaction, submit: Submit) -> Row:
    """From the commit of this on, the request may have arrived."""
    changes = {
        SubmitStep.SEND: {"sending_at": tx.now, "tries": submit.attempt["tries"] + 1},
        SubmitStep.RESEND: {"tries": submit.attempt["tries"] + 1},
    }.get(submit.step)
    if changes:
        update_attempt(tx, submit.attempt["id"], changes)
    return {**submit.attempt, **(changes or {})}


def _perform(runtime: Runtime, submit: Submit) -> Answer:
    """The request itself, outside any transaction."""
    adapter, attempt = submit.work.entry.adapter, submit.attempt
    try:
        match submit.step:
            case SubmitStep.ADOPT:
                return (_read_adopted(submit.work),)
            case SubmitStep.ASK:
                return adapter.find(idempotency_key=attempt["idempotency_key"], token=attempt["token"])
            case _:
                return (adapter.submit(_request(runtime, submit)),)
    except JobsError as error:
        return error
    # An adapter's defect must not leave the job without a due time; whether the request left is not known.
    except Exception as error:  # noqa: BLE001
        _log.exception("submit_broke", provider=submit.work.entry.name)
        return error


def _read_adopted(work: Work) -> Report:
    """The run to take charge of, as it stands; an answer about another one is none.

    Raises:
        JobsError: Of the port; nothing was sent in any case.
    """
    run = work.job["adopt"]
    report = work.entry.adapter.status(work.address(run))
    if report.provider_job_id not in (None, run):
        raise Transient(f"asked about run {run}, answered about {report.provider_job_id}")
    return replace(report, provider_job_id=run)


def _request(runtime: Runtime, submit: Submit) -> SubmitRequest:
    token = submit.attempt["token"]
    return SubmitRequest(
        input=submit.work.job["input"],
        idempotency_key=submit.attempt["idempotency_key"],
        token=token,
        job_id=submit.work.job_id,
        callback_url=f"{runtime.settings.public_url}/webhooks/{submit.work.entry.name}/{token}",
    )


def _wake(runtime: Runtime, submit: Submit, answer: Answer) -> None:
    """After the commit that made the runs' ids known: events which came before it can be applied, output be heard."""
    for report in answer if isinstance(answer, tuple) else ():
        if report.provider_job_id is not None:
            runtime.wake_parked(submit.work.entry.name, report.provider_job_id)
            ring_reader(runtime, submit.work.job)


def _log_answer(submit: Submit, answer: Answer, result: Submitted) -> None:
    runs = [report.provider_job_id for report in answer] if isinstance(answer, tuple) else None
    _log.info(
        "submit",
        provider=submit.work.entry.name,
        attempt=submit.work.attempt,
        step=str(submit.step),
        result=str(result),
        runs=runs,
        error=None if runs is not None else str(answer),
    )
