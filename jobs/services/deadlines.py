"""What the clock has to say about open jobs: expected by now, worth a person's look, past the deadline.

At the deadline the provider's ``on_deadline`` decides: ``review`` asks a person and polls on slowly; ``fail`` cancels
the run and then fails the job; ``cancel`` cancels it. Where nothing was ever sent the job ends at once. Where a submit
is ambiguous there is no run to cancel: ``fail`` ends the job all the same (a run that shows up later is stopped), and
``cancel`` leaves the wish standing beside the review, to be carried out as soon as the run is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog

from jobs.core.decide import deadline_error
from jobs.core.errors import Stale, Unavailable
from jobs.core.observations import Observation, Review, ReviewReason, Source
from jobs.core.policy import Alarms, OnDeadline, Policy
from jobs.core.states import JobState, is_terminal
from jobs.services.canceling import was_never_sent
from jobs.services.job_views import view_of
from jobs.services.runtime import Runtime
from jobs.services.work import ring_relay
from jobs.storage.database import Transaction
from jobs.storage.jobs import Row, get_job, list_ringing, lock_jobs, update_bookkeeping
from jobs.storage.premise import Premise, always
from jobs.storage.schema import jobs

# How long a run may take to end after its cancel, before a job that fails at its deadline does so without it.
FAILING_GRACE = timedelta(minutes=15)
_POSTPONED = timedelta(minutes=1)

_log = structlog.get_logger(__name__)


def ring_alarms(runtime: Runtime, limit: int, *, premise: Premise = always) -> int:
    """Observes what time has brought about for jobs whose next alarm is due.

    One transaction for each job: a row that cannot be handled holds up no other.

    Args:
        runtime: The process's parts.
        limit: Jobs at most.
        premise: Checked in each transaction.

    Returns:
        How many jobs were looked at.

    Raises:
        Stale: The premise failed.
    """
    with runtime.database.read() as tx:
        due = list_ringing(tx, limit=limit)
    for job_id in due:
        try:
            ring_relay(runtime, _ring(runtime, job_id, premise))
        except (Stale, Unavailable):
            raise
        except Exception:  # noqa: BLE001 - one row's defect; it is looked at again, and the rows behind it now
            _log.exception("alarm_broke", job=job_id)
            _postpone(runtime, job_id)
    return len(due)


def _postpone(runtime: Runtime, job_id: str) -> None:
    with runtime.database.write() as tx:
        update_bookkeeping(tx, job_id, {"next_alarm_at": tx.now + _POSTPONED}, jobs.c.next_alarm_at.is_not(None))


def _ring(runtime: Runtime, job_id: str, premise: Premise) -> list[str]:
    event_ids: list[str] = []
    with runtime.database.write() as tx:
        premise(tx)
        row = lock_jobs(tx, [job_id]).get(job_id)
        if row is None or row["next_alarm_at"] is None or row["next_alarm_at"] > tx.now:
            return []
        alarm = _Alarm(tx, runtime, row)
        for seen in alarm.observations():
            event_ids.extend(runtime.observer.observe(tx, job_id, seen).event_ids)
        alarm.plan_next()
    return event_ids


@dataclass(frozen=True, slots=True)
class _Alarm:
    """One job at one instant; the row as it was when the alarm rang."""

    tx: Transaction
    runtime: Runtime
    row: Row

    def observations(self) -> list[Observation]:
        """What time says, mildest first."""
        if is_terminal(JobState(self.row["state"])):
            return []
        said = []
        if self._is_past("expected_at") and self.row["overdue_at"] is None:
            said.append(self._say(overdue=True))
        if self._is_past("deadline_at"):
            said.append(self._at_deadline())
        elif self._is_past("review_at"):
            said.append(self._say(review=Review(ReviewReason.OVERDUE, "it runs longer than expected")))
        return said

    def _is_past(self, name: str) -> bool:
        at: datetime | None = self.row[name]
        return at is not None and at <= self.tx.now

    def _at_deadline(self) -> Observation:
        match self._policy.on_deadline:
            case OnDeadline.REVIEW:
                return self._say(review=Review(ReviewReason.DEADLINE, "its deadline passed and it is still open"))
            case OnDeadline.FAIL:
                error = deadline_error(view_of(self.row))
                if self.row["failing"] or not self._has_run_to_cancel():
                    return self._say(state=JobState.FAILED, error=error)
                return self._say(cancel_requested=True, error=error)
            case OnDeadline.CANCEL:
                if was_never_sent(self.tx, self.row):
                    return self._say(state=JobState.CANCELED, reason="nothing had been sent")
                return self._say(cancel_requested=True)

    def _has_run_to_cancel(self) -> bool:
        entry = self.runtime.providers.get(self.row["provider"])
        can_cancel = entry is not None and entry.adapter.capabilities.cancel
        return can_cancel and self.row["provider_job_id"] is not None

    @property
    def _policy(self) -> Policy:
        """The provider's rules; a provider that left the configuration has the mild ones."""
        entry = self.runtime.providers.get(self.row["provider"])
        return entry.policy if entry else Policy()

    def _say(self, **claims: Any) -> Observation:
        return Observation(source=Source.DEADLINE, at=self.tx.now, **claims)

    def plan_next(self) -> None:
        """The next alarm of a job that is still open, and the cancel its deadline asked for."""
        row, now = get_job(self.tx, self.row["id"]), self.tx.now
        if is_terminal(JobState(row["state"])):
            update_bookkeeping(self.tx, row["id"], {"next_alarm_at": None})
            return
        following = Alarms(row["expected_at"], row["review_at"], row["deadline_at"]).next_after(now)
        changes: dict[str, Any] = {"next_alarm_at": now + FAILING_GRACE if row["failing"] else following}
        if self._is_past("deadline_at") and row["cancel_requested_at"] and row["provider_job_id"]:
            # An earlier wish may have exhausted its tries; the deadline's is a new one.
            changes |= {"next_cancel_at": row["next_cancel_at"] or now, "cancel_tries": 0, "cancel_starts": 0}
        update_bookkeeping(self.tx, row["id"], changes)
