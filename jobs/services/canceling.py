"""Ending a job on request: a wish is written at once, the run is canceled at its provider until that lands.

A job of which nothing was ever sent ends in the same transaction. Otherwise the provider has the last word: the job is
canceled when it says so, and has succeeded where the success came first. A run that outlived its job (we gave up on
it, or a second one began) is stopped the same way.

A provider that cannot cancel leaves the wish standing: polling goes on and the job ends as the provider ends it; only
where the deadline asked for the end (``on_deadline = "fail"``) does the job fail at once, its run left alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

import structlog

from jobs.broker import CANCEL
from jobs.core.decide import deadline_error
from jobs.core.decisions import Step
from jobs.core.errors import Conflict, JobsError
from jobs.core.observations import Observation, Source
from jobs.core.states import JobState, is_terminal
from jobs.net.http import within
from jobs.providers.port import AlreadyFinished, Gone, Report
from jobs.services.accounts import outages
from jobs.services.job_views import view_of
from jobs.services.reports import observation_of
from jobs.services.runtime import Runtime
from jobs.services.work import ASK_WITHIN_S, Work, begin_work, bury, end_work, gives_up, obey, ring_relay, wait_after
from jobs.storage.attempts import get_attempt
from jobs.storage.database import Transaction
from jobs.storage.history import append_transitions, transition_row
from jobs.storage.jobs import Row, get_job, lock_job, update_bookkeeping
from jobs.telemetry import span

_Answer: TypeAlias = "Report | Exception | None"
_log = structlog.get_logger(__name__)


class Canceled(StrEnum):
    """What came of one message."""

    NOTHING = "nothing"  # not due, not ours, or no budget
    DONE = "done"  # the provider took it
    TOO_LATE = "too_late"  # the run had ended; its status is read
    RETRY = "retry"
    IMPOSSIBLE = "impossible"  # the provider cannot cancel
    DEAD = "dead"  # exhausted its tries


def request_cancel(runtime: Runtime, job_id: str, *, tenant: str | None = None) -> Row:
    """Writes the wish to end a job; a second wish changes nothing.

    Args:
        runtime: The process's parts.
        job_id: The job.
        tenant: Whose job it must be; None: anybody's.

    Returns:
        The job afterwards: canceled, or with ``cancel_requested_at``.

    Raises:
        NotFound: There is no such job of the tenant's.
        Conflict: The job has ended.
    """
    with runtime.database.write() as tx:
        get_job(tx, job_id, tenant=tenant)
        row = lock_job(tx, job_id)
        if is_terminal(JobState(row["state"])):
            raise Conflict(f"the job has ended: {row['state']}")
        if row["outcome"] is not None:
            raise Conflict("the provider has finished; the job's files are being collected")
        if row["cancel_requested_at"] is not None:
            return row
        unsent = was_never_sent(tx, row)
        seen = Observation(
            source=Source.CANCEL,
            at=tx.now,
            state=JobState.CANCELED if unsent else None,
            cancel_requested=True,
            reason="nothing had been sent" if unsent else None,
        )
        observed = runtime.observer.observe(tx, job_id, seen)
    if not unsent:
        runtime.broker.publish(CANCEL, job_id)
    ring_relay(runtime, observed.event_ids)
    return {**row, **observed.job}


def was_never_sent(tx: Transaction, row: Row) -> bool:
    """Whether nothing of the job can exist at the provider."""
    if row["provider_job_id"] is not None or row["adopt"] is not None:
        return False
    return get_attempt(tx, row["id"], row["attempt"])["sending_at"] is None


def cancel_run(runtime: Runtime, job_id: str, lease_token: str | None = None) -> Canceled:
    """Cancels a job's run at its provider, if that is due and ours to do.

    Args:
        runtime: The process's parts.
        job_id: The job, open or ended.
        lease_token: Of the claim that sent the message; None: the job is claimed here, if it is free and due.

    Raises:
        Unavailable: The database is away; the cancel is repeated when the lease has ended.
    """
    with span("cancel_run", clock=runtime.clock, job=job_id):
        with runtime.database.write() as tx:
            begun = _begin(tx, runtime, job_id=job_id, lease_token=lease_token)
        if isinstance(begun, Canceled):
            return begun
        answer = _perform(begun)
        with runtime.database.write() as tx:
            record = _CancelRecord(tx, runtime, begun)
            result = record.write(answer)
        error = str(answer) if isinstance(answer, Exception) else None
        _log.info("cancel", provider=begun.entry.name, tries=begun.tries, result=str(result), error=error)
        ring_relay(runtime, record.event_ids)
        return result


def _begin(tx: Transaction, runtime: Runtime, *, job_id: str, lease_token: str | None) -> Work | Canceled:
    work = begin_work(tx, runtime, "cancel", job_id=job_id, lease_token=lease_token)
    if work is None:
        return Canceled.NOTHING
    if work.job["provider_job_id"] is None:
        end_work(tx, work, due_at=None)  # the submit makes it due again once the run is known
        return Canceled.NOTHING
    if not work.entry.adapter.capabilities.cancel:
        return _CancelRecord(tx, runtime, work).impossible()
    return work


def _perform(work: Work) -> _Answer:
    """The request itself, outside any transaction; a provider takes the same cancel twice without harm."""
    try:
        with within(ASK_WITHIN_S):
            return work.entry.adapter.cancel(work.address(work.job["provider_job_id"]))
    except JobsError as error:
        return error
    # An adapter's defect is this job's trouble only; the cancel is tried again and counted.
    except Exception as error:  # noqa: BLE001
        _log.exception("cancel_broke", provider=work.entry.name)
        return error


@dataclass(slots=True)
class _CancelRecord:
    """Writes what a cancel came to, inside one open transaction."""

    tx: Transaction
    runtime: Runtime
    work: Work
    event_ids: list[str] = field(default_factory=list)
    away: bool = False  # it failed because the provider is away, which uses up no tries

    def write(self, answer: _Answer) -> Canceled:
        obey(self.tx, self.work, answer if isinstance(answer, JobsError) else None)
        entry, ref = self.work.entry, self.work.job_id
        self.away, self.event_ids = outages.observe(self.tx, self.runtime, entry, ref=ref, answer=answer)
        match answer:
            case Report():
                self._observe(observation_of(answer, source=Source.CANCEL, at=self.tx.now, attempt=self.work.attempt))
                return self._landed(Canceled.DONE)
            case None:
                return self._landed(Canceled.DONE)
            case AlreadyFinished() | Gone():
                return self._landed(Canceled.TOO_LATE)
            case JobsError():
                return self._failed(answer, answer.detail)
            case _:
                return self._failed(answer, f"the adapter raised {type(answer).__name__}")

    def impossible(self) -> Canceled:
        """The provider cannot cancel: see the module."""
        row = lock_job(self.tx, self.work.job_id)
        state = JobState(row["state"])
        seen = Observation(source=Source.CANCEL, at=self.tx.now, attempt=self.work.attempt)
        step = Step(state, state, applied=False, reason="the provider cannot cancel a run")
        append_transitions(self.tx, [transition_row(self.work.job_id, step, seen)])
        self._fail_at_deadline(row)
        end_work(self.tx, self.work, due_at=None)
        return Canceled.IMPOSSIBLE

    def _landed(self, result: Canceled) -> Canceled:
        """The wish is at the provider; how the run ends is read, unless the answer already said so.

        A job that has ended is read once where its run turned out to have ended by itself: there may be a late
        outcome, paid for and worth keeping.
        """
        row = lock_job(self.tx, self.work.job_id)
        if not is_terminal(JobState(row["state"])) or result is Canceled.TOO_LATE:
            update_bookkeeping(self.tx, self.work.job_id, {"next_poll_at": self.tx.now})
        end_work(self.tx, self.work, due_at=None, cancel_tries=0)
        return result

    def _failed(self, answer: Exception, reason: str) -> Canceled:
        work, error = self.work, answer if isinstance(answer, JobsError) else None
        # A provider that is busy, or away, has not failed this job.
        asked_to_wait = self.away or (error is not None and error.retry_after is not None)
        if asked_to_wait or not gives_up(self.tx, work.entry, answer, tries=work.tries):
            due_at = self.tx.now + wait_after(error, work.tries, rng=self.runtime.rng)
            end_work(self.tx, work, due_at=due_at, cancel_tries=work.tries - asked_to_wait)
            return Canceled.RETRY
        row = lock_job(self.tx, work.job_id)
        bury(self.tx, work, reason, attempts=work.tries)
        self._fail_at_deadline(row)
        end_work(self.tx, work, due_at=None)
        return Canceled.DEAD

    def _fail_at_deadline(self, row: Row) -> None:
        """A job whose end the deadline asked for ends, even where its run cannot be stopped."""
        if row["failing"] and not is_terminal(JobState(row["state"])):
            error = deadline_error(view_of(row))
            self._observe(Observation(source=Source.DEADLINE, at=self.tx.now, state=JobState.FAILED, error=error))

    def _observe(self, seen: Observation) -> None:
        observed = self.runtime.observer.observe(self.tx, self.work.job_id, seen)
        self.event_ids.extend(observed.event_ids)
