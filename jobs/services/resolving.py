"""A person ends a review: names the job's state, tries anew, asks the provider again, or takes note.

Every resolution leaves a row in the job's history that says who decided and why, also where no state moved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import structlog

from jobs.broker import RELAY, SUBMIT
from jobs.core.decisions import Step
from jobs.core.errors import Conflict
from jobs.core.events import EventType
from jobs.core.observations import JobError, Observation, ReviewReason, Source
from jobs.core.policy import Policy
from jobs.core.states import JobState, is_terminal
from jobs.services.alarms import alarm_columns
from jobs.services.documents import Document, job_document
from jobs.services.faults import field_fault
from jobs.services.job_events import append_job_event
from jobs.services.run_book import owner_in_words
from jobs.services.runtime import Runtime
from jobs.storage.attempts import find_attempt_by_run, insert_attempt
from jobs.storage.database import Transaction
from jobs.storage.extra_runs import find_extra_run, insert_extra_run, leave_extra_run
from jobs.storage.history import append_transitions, transition_row
from jobs.storage.jobs import Row, get_job, lock_job, update_bookkeeping, update_job
from jobs.storage.output import renew_stream
from jobs.telemetry import span

_log = structlog.get_logger(__name__)


class Action(StrEnum):
    """How a review ends."""

    SETTLE = "settle"  # the person names the state
    RESUBMIT = "resubmit"  # a new attempt, with a key, a token and a deadline of its own
    POLL = "poll"  # ask the provider once more, now
    ACKNOWLEDGE = "acknowledge"  # nothing is to be done


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a person decided.

    Attributes:
        reason: Why; kept in the history.
        state: For ``settle``: running or an end.
        provider_job_id: For ``settle``: the provider's id of the run, where the person found it.
        by: The key that decided.
    """

    action: Action
    reason: str
    by: str
    state: JobState | None = None
    provider_job_id: str | None = None


@dataclass(frozen=True, slots=True)
class _Case:
    """One resolution under way: the job as locked."""

    runtime: Runtime
    tx: Transaction
    job: Row
    decided: Resolution

    @property
    def is_over(self) -> bool:
        return is_terminal(JobState(self.job["state"]))

    @property
    def words(self) -> str:
        return f"{self.decided.action} by {self.decided.by}: {self.decided.reason}"

    @property
    def policy(self) -> Policy:
        entry = self.runtime.providers.get(self.job["provider"])
        return entry.policy if entry else Policy()


def resolve(runtime: Runtime, job_id: str, *, tenant: str, decided: Resolution) -> Document:
    """Ends a review, and returns the job.

    Raises:
        NotFound: There is no such job, or it is another tenant's.
        Conflict: The job waits for nobody, or has ended, or the run belongs to another job.
        Unprocessable: ``settle`` without a state to settle on, or fields of ``settle`` with another action.
    """
    _check(decided)
    with span("resolve", clock=runtime.clock, job=job_id), runtime.database.write() as tx:
        get_job(tx, job_id, tenant=tenant)
        case = _Case(runtime, tx, lock_job(tx, job_id), decided)
        _check_review(case)
        _ACTIONS[decided.action](case)
        document = job_document(get_job(tx, job_id))
    _log.info("review resolved", job=job_id, action=str(decided.action), by=decided.by)
    _ring(runtime, document, decided)
    return document


def _ring(runtime: Runtime, job: Document, decided: Resolution) -> None:
    """After the commit: what it made possible happens now instead of at the next sweep."""
    runtime.broker.publish(RELAY)
    if decided.action is Action.RESUBMIT:
        runtime.broker.publish(SUBMIT, job["id"])
    if decided.provider_job_id is not None:
        runtime.wake_parked(job["provider"], decided.provider_job_id)


def _check(decided: Resolution) -> None:
    settles = decided.action is Action.SETTLE
    if settles and decided.state in (None, JobState.PENDING):
        raise field_fault("state", "must say where the job is: running, succeeded, failed or canceled")
    for name in ("state", "provider_job_id"):
        if not settles and getattr(decided, name) is not None:
            raise field_fault(name, f"belongs to settle, not to {decided.action}")


def _check_review(case: _Case) -> None:
    job, action = case.job, case.decided.action
    if case.is_over and action in (Action.SETTLE, Action.RESUBMIT):
        raise Conflict(f"the job has ended ({job['state']}), and an end stays")
    if job["outcome"] is not None and action in (Action.RESUBMIT, Action.POLL):
        raise Conflict("the provider has finished; the job's files are being collected")
    late = action is Action.ACKNOWLEDGE and job["late_outcome"] is not None
    if job["review_reason"] is None and not late:
        raise Conflict("the job does not wait for a person")


def _settle(case: _Case) -> None:
    run, state = case.decided.provider_job_id, case.decided.state
    if run is not None:
        _check_run(case, run)
    error = JobError("settled", case.decided.reason) if state is JobState.FAILED else None
    _observe(case, state=state, provider_job_id=run, error=error)


def _check_run(case: _Case, run: str) -> None:
    """A slip of the pen must not look like a run the provider billed twice."""
    known = case.job["provider_job_id"]
    if known not in (None, run):
        raise Conflict(f"the job's run is {known!r}; to give it up, cancel it or resubmit the job")
    provider = case.job["provider"]
    owner = find_attempt_by_run(case.tx, provider, run)
    if owner is not None and owner["job_id"] != case.job["id"]:
        whose = owner_in_words(case.tx, owner["job_id"], tenant=case.job["tenant"])
        raise Conflict(f"run {run!r} belongs to {whose}")
    extra = find_extra_run(case.tx, provider, run)
    if extra is not None and extra["lease_until"] is not None and extra["lease_until"] > case.tx.now:
        raise Conflict(f"run {run!r} is being stopped at this moment, as one too many; look at it again in a minute")
    leave_extra_run(case.tx, provider, run, reason=case.words)


def _acknowledge(case: _Case) -> None:
    _observe(case)


def _poll(case: _Case) -> None:
    """Asks now: for the status of a known run, else whether the submit is known."""
    job = case.job
    if job["provider_job_id"] is None and case.is_over:
        raise Conflict("the job ended without a run at the provider: there is nothing to ask")
    due = "next_submit_at" if job["provider_job_id"] is None else "next_poll_at"
    _observe(case)
    update_bookkeeping(case.tx, job["id"], {due: case.tx.now, "starts": 0, "poll_failures": 0, "submit_tries": 0})


def _observe(case: _Case, **claims: Any) -> None:
    seen = Observation(source=Source.OPERATOR, at=case.tx.now, resolved_by_person=True, reason=case.words, **claims)
    observed = case.runtime.observer.observe(case.tx, case.job["id"], seen)
    if observed.step is None:
        _remember(case)


def _remember(case: _Case) -> None:
    """A history row for a decision that moved no state."""
    state = JobState(case.job["state"])
    seen = Observation(source=Source.OPERATOR, at=case.tx.now)
    step = Step(state, state, applied=False, reason=case.words)
    append_transitions(case.tx, [transition_row(case.job["id"], step, seen)])


def _resubmit(case: _Case) -> None:
    """Opens attempt n+1. Whoever still works on attempt n has lost the lease, and its verdicts name attempt n."""
    job = case.job
    if job["adopt"] is not None:
        raise Conflict("the job took charge of a run that existed; submit a new job instead")
    if job["cancel_requested_at"] is not None:
        raise Conflict("somebody asked for the end of this job; it will not be submitted again")
    number = job["attempt"] + 1
    after = update_job(case.tx, job, {**_afresh(case), "attempt": number, "event_count": job["event_count"] + 1})
    update_bookkeeping(case.tx, job["id"], _due_afresh(case))
    insert_attempt(
        case.tx,
        job_id=job["id"],
        provider=job["provider"],
        number=number,
        at=case.tx.now,
        beyond_budget=job["review_reason"] == ReviewReason.BUDGET,
    )
    _give_up_run(case)
    renew_stream(case.tx, job["id"], attempt=number)
    append_job_event(case.tx, EventType.JOB_REVIEW_RESOLVED, after)
    _remember(case)


def _give_up_run(case: _Case) -> None:
    """Nobody waits for the run of the attempt that is given up: it is stopped, and what it cost is counted."""
    job, run = case.job, case.job["provider_job_id"]
    if run is not None:
        insert_extra_run(case.tx, job_id=job["id"], attempt=job["attempt"], provider=job["provider"], run=run)


def _afresh(case: _Case) -> dict[str, Any]:
    """What the world sees of a new attempt: no run yet, and alarms that start now."""
    review = ("review_reason", "review_detail", "review_since")
    gone = ("provider_job_id", "submitted_at", "overdue_at", "progress", *review)
    forecasts = case.runtime.observer.forecasts
    return dict.fromkeys(gone) | alarm_columns(case.tx, forecasts, case.policy, job=case.job, start=case.tx.now)


def _due_afresh(case: _Case) -> dict[str, Any]:
    counters = (
        "starts",
        "submit_tries",
        "poll_count",
        "poll_failures",
        "missing_reads",
        "cancel_tries",
        "cancel_starts",
    )
    idle = ("next_poll_at", "polled_at", "next_cancel_at", "lease_token", "lease_until")
    return {"next_submit_at": case.tx.now, **dict.fromkeys(counters, 0), **dict.fromkeys(idle)}


_ACTIONS: Mapping[Action, Callable[[_Case], None]] = {
    Action.SETTLE: _settle,
    Action.RESUBMIT: _resubmit,
    Action.POLL: _poll,
    Action.ACKNOWLEDGE: _acknowledge,
}
