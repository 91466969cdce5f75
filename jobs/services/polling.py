"""Asking a provider how a job stands: what brings home every job whose webhook got lost.

A poll writes what it learned through the one door. What was no answer changes nothing but the time of the next poll,
and only a definite word of the provider can fail a job.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypeAlias

import sqlalchemy as sa
import structlog

from jobs import telemetry
from jobs.core.backoff import retry_wait
from jobs.core.decisions import Step, Verdict
from jobs.core.errors import JobsError, Transient
from jobs.core.forecast import Outlook
from jobs.core.observations import JobError, Observation, ReviewReason, Source
from jobs.core.policy import Policy
from jobs.core.polls import next_poll_wait
from jobs.core.states import JobState, is_terminal
from jobs.net.http import within
from jobs.providers.port import Gone, Report
from jobs.services.accounts import outages
from jobs.services.observe import Observed
from jobs.services.reports import observation_of
from jobs.services.runtime import Runtime
from jobs.services.work import ASK_WITHIN_S, Work, begin_work, break_off, end_work, obey, ring_relay, wait_after
from jobs.storage.database import Transaction
from jobs.storage.history import append_transitions, transition_row
from jobs.storage.jobs import Row, lock_job, update_bookkeeping
from jobs.storage.schema import jobs

# A run just accepted may not be readable everywhere at once.
GONE_GRACE = timedelta(seconds=60)
MAX_MISSING_READS = 5
# A job that has ended is read to settle a contradiction; where that fails so often, the contradiction stands.
_MAX_CONFIRMING_TRIES = 5
_NO_WAIT = timedelta(0)
# A result that the provider soon deletes is looked for at least so often while it lasts.
_READS_PER_TTL = 4

_Answer: TypeAlias = "Report | Exception"
_log = structlog.get_logger(__name__)


class Polled(StrEnum):
    """What came of one message."""

    NOTHING = "nothing"  # not due, not ours, or no budget
    APPLIED = "applied"  # the state moved
    SAME = "same"  # it did not
    UNKNOWN_STATUS = "unknown_status"
    TRANSIENT = "transient"  # no usable answer
    GONE = "gone"  # the provider does not know the run
    BROKE = "broke"  # the adapter raised what it must not


def poll_job(runtime: Runtime, job_id: str, lease_token: str | None = None) -> Polled:
    """Reads a job's status, if that is due and ours to do.

    Args:
        runtime: The process's parts.
        job_id: The job.
        lease_token: Of the claim that sent the message; None: the job is claimed here, if it is free and due.

    Raises:
        Unavailable: The database is away; the read is repeated when the lease has ended.
    """
    with telemetry.span("poll_job", clock=runtime.clock, job=job_id):
        with runtime.database.write() as tx:
            work = _begin(tx, runtime, job_id=job_id, lease_token=lease_token)
        if work is None:
            return Polled.NOTHING
        answer = _read(work)
        with runtime.database.write() as tx:
            record = _PollRecord(tx, runtime, work)
            result = record.write(answer)
        _log_answer(work, answer, result)
        _measure(work, result, brought_home=record.brought_home, until=record.tx.now)
        ring_relay(runtime, record.event_ids)
        return result


def request_poll(tx: Transaction, job_id: str) -> bool:
    """Makes an open job's next poll due now (a provider hinted that there is news); says whether it did."""
    is_later = (jobs.c.next_poll_at.is_(None)) | (jobs.c.next_poll_at > tx.now)
    is_open = sa.and_(jobs.c.finished_at.is_(None), jobs.c.outcome.is_(None))
    return update_bookkeeping(
        tx, job_id, {"next_poll_at": tx.now}, jobs.c.provider_job_id.is_not(None), is_open, is_later
    )


def _begin(tx: Transaction, runtime: Runtime, *, job_id: str, lease_token: str | None) -> Work | None:
    work = begin_work(tx, runtime, "poll", job_id=job_id, lease_token=lease_token)
    if work is not None and work.job["provider_job_id"] is None:
        end_work(tx, work, due_at=None)  # nothing to ask about; the submit will make a poll due
        return None
    return work


def _read(work: Work) -> _Answer:
    """The request itself, outside any transaction."""
    run = work.job["provider_job_id"]
    try:
        with within(ASK_WITHIN_S):
            report = work.entry.adapter.status(work.address(run))
    except JobsError as error:
        return error
    # One job's odd answer or an adapter's defect is that job's trouble; the others are polled on.
    except Exception as error:  # noqa: BLE001
        _log.exception("poll_broke", job=work.job_id, provider=work.entry.name)
        return error
    if report.provider_job_id not in (None, run):
        return Transient(f"asked about run {run}, answered about {report.provider_job_id}")
    return report


@dataclass(slots=True)
class _PollRecord:
    """Writes what a poll came to, inside one open transaction."""

    tx: Transaction
    runtime: Runtime
    work: Work
    event_ids: list[str] = field(default_factory=list)
    brought_home: bool = False
    away: bool = False  # it failed because the provider is away: nothing to be held against the job

    def write(self, answer: _Answer) -> Polled:
        obey(self.tx, self.work, answer if isinstance(answer, JobsError) else None)
        entry, ref = self.work.entry, self.work.job_id
        self.away, self.event_ids = outages.observe(self.tx, self.runtime, entry, ref=ref, answer=answer)
        match answer:
            case Report():
                return self._news(answer)
            case Gone():
                return self._gone(answer)
            case JobsError():
                return self._no_answer(answer, Polled.TRANSIENT)
            case _:
                return self._broke()

    def _news(self, report: Report) -> Polled:
        seen = observation_of(report, source=Source.POLL, at=self.tx.now, attempt=self.work.attempt)
        observed = self._observe(seen)
        if observed.verdict is Verdict.REPEATED:
            self._keep_confirmation(observed.job, seen)
        contradicts = observed.verdict is Verdict.CONFLICT  # then the provider is asked once more
        is_open = not _is_settled(observed.job)
        polled_at = self.tx.now if is_open else self.work.job["polled_at"]
        self._end(observed.job, confirming=contradicts, poll_failures=0, missing_reads=0, polled_at=polled_at)
        if report.unknown_status is not None:
            return Polled.UNKNOWN_STATUS
        return Polled.APPLIED if observed.verdict is Verdict.APPLIED else Polled.SAME

    def _keep_confirmation(self, row: Row, seen: Observation) -> None:
        """After a contradiction the provider is asked once more; what it says then is a person's evidence."""
        if row["review_reason"] != ReviewReason.CONFLICTING_OUTCOME or seen.state is None:
            return
        words = f"asked again after the contradiction, the provider says {seen.state}"
        step = Step(JobState(row["state"]), seen.state, applied=False, reason=words)
        append_transitions(self.tx, [transition_row(self.work.job_id, step, seen)])

    def _gone(self, error: Gone) -> Polled:
        row = lock_job(self.tx, self.work.job_id)
        accepted_at = row["submitted_at"] or row["created_at"]
        if self.tx.now - accepted_at < GONE_GRACE:
            return self._no_answer(error, Polled.GONE)
        missing = row["missing_reads"] + 1
        if missing >= MAX_MISSING_READS and not _is_settled(row):
            gone = JobError("result_gone", f"the provider no longer knows the run: {error.detail}")
            row = self._observe(self._failure(gone)).job
        policy = self.work.entry.policy
        wait = retry_wait(missing, base=policy.poll_base, cap=policy.poll_cap, rng=self.runtime.rng)
        self._end(row, at_least=wait, missing_reads=missing)
        return Polled.GONE

    def _failure(self, error: JobError) -> Observation:
        work = self.work
        return Observation(source=Source.POLL, at=self.tx.now, attempt=work.attempt, state=JobState.FAILED, error=error)

    def _no_answer(self, error: JobsError, result: Polled) -> Polled:
        row = lock_job(self.tx, self.work.job_id)
        failures, policy = row["poll_failures"] + (not self.away), self.work.entry.policy
        wait = retry_wait(failures, base=policy.poll_base, cap=policy.overdue_cap, rng=self.runtime.rng)
        self._end(
            row,
            at_least=max(wait, error.retry_after or wait),
            confirming=failures < _MAX_CONFIRMING_TRIES,
            poll_failures=failures,
            poll_count=self.work.tries - self.away,
        )
        return result

    def _broke(self) -> Polled:
        wait = wait_after(None, self.work.job["starts"], rng=self.runtime.rng)
        break_off(self.tx, self.work, due_at=self.tx.now + wait)
        return Polled.BROKE

    def _end(self, row: Row, *, at_least: timedelta = _NO_WAIT, confirming: bool = False, **changes: Any) -> None:
        """Plans the next poll of an open job; one that has ended is not asked about again, once it is settled."""
        wait = max(_wait(row, self.work, runtime=self.runtime, tx=self.tx), at_least)
        over = _is_settled(row) and not confirming
        end_work(self.tx, self.work, due_at=None if over else self.tx.now + wait, **changes)

    def _observe(self, seen: Observation) -> Observed:
        observed = self.runtime.observer.observe(self.tx, self.work.job_id, seen)
        self.event_ids.extend(observed.event_ids)
        self.brought_home = _is_settled(observed.job) and not _is_settled(self.work.job)
        return observed


def _is_settled(row: Row) -> bool:
    """Whether the provider's word is known: the job has ended, or only collects its files."""
    return is_terminal(JobState(row["state"])) or row["outcome"] is not None


def _wait(row: Row, work: Work, *, runtime: Runtime, tx: Transaction) -> timedelta:
    """By what was learned of such jobs, else by backoff, within what the provider and its results allow."""
    entry = work.entry
    outlook = runtime.observer.forecasts.outlook(tx, entry.name, row["model"])
    began_at = row["submitted_at"] or row["created_at"]
    wait = next_poll_wait(
        replace(outlook, needs_polls=outlook.needs_polls or not entry.calls_back),
        entry.policy,
        number=work.tries,
        age=tx.now - began_at,
        rng=runtime.rng,
        is_late=_is_late(row, entry.policy, outlook, now=tx.now),
    )
    able = entry.adapter.capabilities
    longest = able.result_ttl / _READS_PER_TTL if able.result_ttl else wait
    return max(min(wait, longest), able.polls_min_interval)


def _is_late(row: Row, policy: Policy, outlook: Outlook, *, now: datetime) -> bool:
    """Past the deadline, or past the duration that somebody stated: one that was learned slows nothing down."""
    is_learned = outlook.forecast is not None and row["expected_s"] is None and policy.expected is None
    alarms = (None if is_learned else row["expected_at"], row["deadline_at"])
    return any(at is not None and at <= now for at in alarms)


def _measure(work: Work, result: Polled, *, brought_home: bool, until: datetime) -> None:
    telemetry.POLLS.labels(work.entry.name, str(result)).inc()
    if brought_home:
        telemetry.HEAL_S.labels(work.entry.name).observe(unnoticed(work.job, until=until).total_seconds())


def unnoticed(job: Row, *, until: datetime) -> timedelta:
    """How long a job's end may have gone unnoticed: it may have come at any time since the read before."""
    since: datetime = job["polled_at"] or job["submitted_at"] or job["created_at"]
    return max(until - since, timedelta(0))


def _log_answer(work: Work, answer: _Answer, result: Polled) -> None:
    error = str(answer) if isinstance(answer, Exception) else None
    about: Mapping[str, Any] = {"job": work.job_id, "provider": work.entry.name, "number": work.tries}
    _log.info("poll", **about, result=str(result), error=error)
