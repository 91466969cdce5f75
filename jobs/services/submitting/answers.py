"""What comes of a submit's answer: written in one transaction, through the one door.

Only what the answer is about is written: the run's id, the attempt's outcome, the next due time. A webhook may have
moved the job while we waited, and its word stands (a whole row saved here would overwrite it).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, TypeAlias

from jobs.core.backoff import poll_wait
from jobs.core.decisions import Verdict
from jobs.core.errors import JobsError, Transient
from jobs.core.observations import JobError, Observation, Review, ReviewReason, Source
from jobs.core.states import JobState, is_terminal
from jobs.core.text import clean
from jobs.providers.port import Gone, KeyReused, Refused, Report
from jobs.services.accounts import outages
from jobs.services.accounts.spending import Overspent
from jobs.services.reports import observation_of
from jobs.services.runtime import Runtime
from jobs.services.submitting.plan import MAX_ASKS, Sent, SubmitStep, next_step
from jobs.services.work import MAX_TRIES, Work, break_off, bury, end_work, gives_up, obey, wait_after
from jobs.storage.attempts import update_attempt
from jobs.storage.database import Transaction
from jobs.storage.jobs import Row, lock_job
from jobs.storage.schema import job_attempts

_KEY_TAKEN = "key_reused"
# A lost answer heals by asking: soon at first, it costs a request and saves the client the wait for a poll.
_DOUBT_BASE = timedelta(seconds=1)
_MAX_MESSAGE_CHARS = 500

#: What a provider answered: runs, none, or an error of the port (or one that an adapter must not raise).
Answer: TypeAlias = "tuple[Report, ...] | Exception"


class Submitted(StrEnum):
    """What came of one message."""

    NOTHING = "nothing"  # not due, not ours, or no budget
    ACCEPTED = "accepted"
    REFUSED = "refused"
    RETRY = "retry"  # not accepted, or not known; more will be tried
    REVIEW = "review"  # a person has been asked; where possible the provider is, too
    CANCELED = "canceled"  # somebody asked for the end before anything was sent
    DEAD = "dead"  # exhausted its tries


@dataclass(frozen=True, slots=True)
class Submit:
    """A submit under way: our lease, the attempt as committed, and what we are about to do."""

    work: Work
    attempt: Row
    step: SubmitStep


def sent_of(job: Row, attempt: Row) -> Sent:
    """What is known of an attempt's submit."""
    error = attempt["error"] or {}
    return Sent(
        sending_at=attempt["sending_at"],
        asks=attempt["asks"],
        key_taken=error.get("code") == _KEY_TAKEN,
        wants_end=job["cancel_requested_at"] is not None,
    )


@dataclass(slots=True)
class SubmitRecord:
    """Writes what a submit came to, inside one open transaction.

    Attributes:
        event_ids: Events written.
        away: The request failed because the provider is away, which uses up no tries.
    """

    tx: Transaction
    runtime: Runtime
    submit: Submit
    event_ids: list[str] = field(default_factory=list)
    away: bool = False

    def write(self, answer: Answer) -> Submitted:
        """Writes an answer, whatever it is."""
        error, work = answer if isinstance(answer, JobsError) else None, self.submit.work
        obey(self.tx, work, error)
        self.away, self.event_ids = outages.observe(self.tx, self.runtime, work.entry, ref=work.job_id, answer=answer)
        if isinstance(answer, tuple):
            return self._accept(answer) if answer else self._not_known(asks=1)
        if self._is_overtaken():
            return self._rest()
        match answer:
            case Refused():
                return self._refuse(answer)
            case Gone() if self.submit.step is SubmitStep.ADOPT:
                return self._fail(JobError("unknown_run", "the provider does not know the run to adopt"))
            case Transient():
                return self._not_accepted(answer)
            case _:
                return self._in_doubt(answer)

    def cancel(self) -> Submitted:
        """Ends a job of which nothing was ever sent."""
        reason = "nothing had been sent"
        self._observe(Observation(source=Source.CANCEL, at=self.tx.now, state=JobState.CANCELED, reason=reason))
        end_work(self.tx, self.submit.work, due_at=None)
        return Submitted.CANCELED

    def wait(self) -> Submitted:
        """Nothing more may be done by ourselves: asks a person."""
        return self._not_known(asks=0)

    def hold(self, overspent: Overspent) -> Submitted:
        """Sends nothing while the provider's budget is spent: asks a person, and looks again by itself."""
        review = Review(ReviewReason.BUDGET, overspent.words)
        self._observe(
            Observation(source=Source.SUBMIT, at=self.tx.now, attempt=self.submit.work.attempt, review=review)
        )
        end_work(self.tx, self.submit.work, due_at=overspent.look_at, submit_tries=0)
        return Submitted.REVIEW

    # What was learned ----------------------------------------------------------------------------------

    def _accept(self, reports: tuple[Report, ...]) -> Submitted:
        """Every run is observed: the first becomes the job's, a second one raises the alarm."""
        work = self.submit.work
        verdicts = [
            self._observe(observation_of(report, source=Source.SUBMIT, at=self.tx.now, attempt=work.attempt))
            for report in reports
        ]
        # Where the run turned out to be another job's, this one still has none, and looks again.
        end_work(self.tx, work, due_at=self.tx.now + wait_after(None, work.tries, rng=self.runtime.rng))
        return Submitted.RETRY if verdicts[0] is Verdict.OTHER_RUN else Submitted.ACCEPTED

    def _refuse(self, error: Refused) -> Submitted:
        message = clean(error.detail)[:_MAX_MESSAGE_CHARS]
        self._note({"outcome": "refused", "error": {"code": error.code, "message": message}})
        return self._fail(JobError(error.code, message))

    def _fail(self, error: JobError) -> Submitted:
        work = self.submit.work
        seen = Observation(
            source=Source.SUBMIT, at=self.tx.now, attempt=work.attempt, state=JobState.FAILED, error=error
        )
        self._observe(seen)
        end_work(self.tx, work, due_at=None)
        return Submitted.REFUSED

    def _not_accepted(self, error: Transient) -> Submitted:
        """This request had no effect; whether an earlier one had, it does not say."""
        work, step = self.submit.work, self.submit.step
        if step is SubmitStep.SEND:
            self._note({"sending_at": None}, job_attempts.c.sending_at == self.submit.attempt["sending_at"])
        asked_to_wait = error.retry_after is not None or self.away  # a provider that is busy has not failed
        tries = work.tries - asked_to_wait
        # In doubt, a person is asked soon, and it is tried on all the same.
        in_doubt = step in (SubmitStep.RESEND, SubmitStep.ASK)
        over = work.tries >= MAX_TRIES if in_doubt else gives_up(self.tx, work.entry, error, tries=work.tries)
        if asked_to_wait or not over:
            due_at = self.tx.now + wait_after(error, work.tries, rng=self.runtime.rng)
            end_work(self.tx, work, due_at=due_at, submit_tries=tries)
            return Submitted.RETRY
        if in_doubt:
            return self._ask_person(error.detail, keep_asking=True)
        bury(self.tx, work, error.detail, attempts=work.tries)
        end_work(self.tx, work, due_at=None)
        return Submitted.DEAD

    def _in_doubt(self, error: Exception) -> Submitted:
        """It may have arrived. What an adapter must not raise is taken for the same, and counted as such."""
        code = _KEY_TAKEN if isinstance(error, KeyReused) else "unknown_outcome"
        message = clean(str(error) or type(error).__name__)[:_MAX_MESSAGE_CHARS]
        if self.submit.step in (SubmitStep.SEND, SubmitStep.RESEND):
            self._note({"outcome": "unknown", "error": {"code": code, "message": message}})
        if isinstance(error, JobsError):
            return self._go_on(message, error=error, key_taken=code == _KEY_TAKEN)
        wait = wait_after(None, self.submit.work.tries, rng=self.runtime.rng)
        break_off(self.tx, self.submit.work, due_at=self.tx.now + wait)
        return Submitted.RETRY

    def _not_known(self, *, asks: int) -> Submitted:
        """The provider does not know the submit, or cannot be asked. That permits nothing: its list may lag."""
        if self._is_overtaken():
            return self._rest()
        asked = self.submit.attempt["asks"] + asks
        self._note({"asks": asked})
        lost = (self.submit.attempt["error"] or {}).get("message") or "no answer came to its submit"
        return self._go_on(f"{lost}; asked {asked} times, it knew of none" if asked else lost, asks=asked)

    # What follows --------------------------------------------------------------------------------------

    def _go_on(
        self, why: str, *, error: JobsError | None = None, asks: int | None = None, key_taken: bool = False
    ) -> Submitted:
        work, attempt = self.submit.work, self.submit.attempt
        known = sent_of(work.job, attempt)
        sent = Sent(
            sending_at=known.sending_at,
            asks=known.asks if asks is None else asks,
            key_taken=known.key_taken or key_taken,
            wants_end=known.wants_end,
        )
        step = next_step(sent, work.entry.adapter.capabilities, now=self.tx.now)
        if step is SubmitStep.WAIT:
            return self._ask_person(why, keep_asking=False)
        if (work.tries >= MAX_TRIES and not self.away) or (step is SubmitStep.ASK and sent.asks >= MAX_ASKS):
            return self._ask_person(why, keep_asking=True)
        due_at = self.tx.now + wait_after(error, work.tries, rng=self.runtime.rng, base=_DOUBT_BASE)
        end_work(self.tx, work, due_at=due_at, submit_tries=work.tries - self.away)
        return Submitted.RETRY

    def _ask_person(self, why: str, *, keep_asking: bool) -> Submitted:
        work = self.submit.work
        detail = f"whether the provider began a run is not known: {why}"[:_MAX_MESSAGE_CHARS]
        review = Review(ReviewReason.AMBIGUOUS_SUBMIT, detail)
        self._observe(Observation(source=Source.SUBMIT, at=self.tx.now, attempt=work.attempt, review=review))
        slow = work.entry.policy.overdue_cap
        wait = poll_wait(0, base=slow, cap=slow, rng=self.runtime.rng)
        end_work(self.tx, work, due_at=self.tx.now + wait if keep_asking else None)
        return Submitted.REVIEW

    def _is_overtaken(self) -> bool:
        """A webhook named the run, or the job ended or went on to another attempt, while we waited."""
        row = lock_job(self.tx, self.submit.work.job_id)
        moved_on = row["attempt"] != self.submit.work.attempt or is_terminal(JobState(row["state"]))
        return moved_on or row["provider_job_id"] is not None

    def _rest(self) -> Submitted:
        end_work(self.tx, self.submit.work, due_at=None)
        return Submitted.NOTHING

    def _note(self, changes: Mapping[str, Any], *premise: Any) -> None:
        """Writes the attempt's own columns, while no run of it is known."""
        at = {"answered_at": self.tx.now} if "outcome" in changes else {}
        no_run = job_attempts.c.provider_job_id.is_(None)
        update_attempt(self.tx, self.submit.attempt["id"], {**changes, **at}, no_run, *premise)

    def _observe(self, seen: Observation) -> Verdict:
        observed = self.runtime.observer.observe(self.tx, self.submit.work.job_id, seen)
        self.event_ids.extend(observed.event_ids)
        return observed.verdict
