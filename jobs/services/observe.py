"""The one door: an observation goes in; the job, its history, its events and its due times come out, in one
transaction.

The caller opens the transaction, so that what belongs with the observation (an inbox row marked applied, an attempt
marked refused) commits together with it. A batch costs one lock, one fold per job and one statement per table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from jobs.core.backoff import Rng
from jobs.core.decide import decide
from jobs.core.decisions import Decision, JobView, Step, Verdict
from jobs.core.errors import NotFound
from jobs.core.finishing import as_finished
from jobs.core.observations import Observation, Source
from jobs.core.policy import DEFAULT_POLICY, Policy
from jobs.core.polls import next_poll_wait
from jobs.core.states import JobState, is_terminal
from jobs.services.charging import charge_attempts
from jobs.services.documents import artifact_document, job_document
from jobs.services.forecasts import Forecasts
from jobs.services.job_views import view_of
from jobs.services.run_book import Owner, RunBook, owner_in_words
from jobs.storage.artifacts import artifact_rows, insert_artifacts
from jobs.storage.attempts import Charge
from jobs.storage.database import Transaction
from jobs.storage.dead_letters import dead_letter
from jobs.storage.extra_runs import insert_extra_run
from jobs.storage.history import append_transitions, transition_row
from jobs.storage.jobs import JobUpdate, Row, lock_jobs, update_jobs
from jobs.storage.outbox import append_events, event_row
from jobs.storage.output import arm_stream

DOUBLE_SUBMIT = "double_submit"
# What these say is about a run that is not the job's.
_ELSEWHERE = (Verdict.OTHER_RUN, Verdict.OTHER_ATTEMPT)


@dataclass(frozen=True, slots=True)
class Observed:
    """What became of an observation, and the job afterwards, without its input."""

    verdict: Verdict
    job: Row
    step: Step | None
    event_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _DoubleSubmit:
    """A second run, as it was seen; extra where it belongs to nobody else."""

    words: str
    seen: Observation
    is_extra: bool


@dataclass(slots=True)
class _Fold:
    """One job's share of a batch: the row as locked, and what the batch makes of it."""

    row: Row
    view: JobView
    steps: int = 0
    changes: dict[str, Any] = field(default_factory=dict)
    history: list[Row] = field(default_factory=list)
    events: list[Row] = field(default_factory=list)
    alarms: list[_DoubleSubmit] = field(default_factory=list)
    charges: list[Charge] = field(default_factory=list)
    files: list[Row] = field(default_factory=list)

    @property
    def now_row(self) -> Row:
        """The row as it will be."""
        return {**self.row, **self.changes, "version": self.row["version"] + self.steps}


class Observer:
    """Applies observations; knows each provider's rules of time.

    Attributes:
        forecasts: How long jobs take.
        can_follow: Whether a job, given its row without its input, tells its output as it is made.
    """

    def __init__(self, policies: Mapping[str, Policy], rng: Rng) -> None:
        self._policies = policies
        self._rng = rng
        self.forecasts = Forecasts()
        self.can_follow: Callable[[Transaction, Row], bool] = lambda _tx, _row: False

    def observe(self, tx: Transaction, job_id: str, seen: Observation) -> Observed:
        """Applies one observation.

        Raises:
            NotFound: There is no such job.
            Stale: The row changed under us (only where a writer ignores the row lock); try again.
        """
        return self.observe_many(tx, [(job_id, seen)])[0]

    def observe_many(self, tx: Transaction, pairs: Sequence[tuple[str, Observation]]) -> list[Observed]:
        """Applies observations in the order given, all or none.

        Raises:
            NotFound: One of the jobs does not exist.
            Stale: A row changed under us; nothing was written.
        """
        rows = lock_jobs(tx, (job_id for job_id, _ in pairs))
        folds = {job_id: _Fold(row, view_of(row)) for job_id, row in rows.items()}
        book = RunBook(tx, _runs_named(folds, pairs))
        verdicts = [self._fold(tx, _known(folds, job_id), seen, book) for job_id, seen in pairs]
        _write(tx, list(folds.values()), book)
        self._arm_streams(tx, folds.values())
        charge_attempts(tx, self._policies, [(fold.row, charge) for fold in folds.values() for charge in fold.charges])
        return [
            Observed(verdict, folds[job_id].now_row, step, event_ids)
            for (job_id, _), (verdict, step, event_ids) in zip(pairs, verdicts, strict=True)
        ]

    def _arm_streams(self, tx: Transaction, folds: Iterable[_Fold]) -> None:
        """A run that has just become known is listened to, where its provider can be."""
        for fold in folds:
            if fold.changes.get("provider_job_id") and self.can_follow(tx, fold.row):
                arm_stream(tx, job_id=fold.row["id"], provider=fold.row["provider"], attempt=fold.view.attempt)

    def _fold(
        self, tx: Transaction, fold: _Fold, seen: Observation, book: RunBook
    ) -> tuple[Verdict, Step | None, tuple[str, ...]]:
        policy = self._policies.get(fold.row["provider"], DEFAULT_POLICY)
        seen = as_finished(seen, policy.finish)
        decision = _decide(tx, fold, seen, book)
        fold.view = decision.job
        fold.changes |= {**decision.changes, **self._due_times(tx, decision, seen, policy, row=fold.row)}
        fold.steps += bool(decision.changes)
        _expect_files(tx, fold, decision)
        if decision.step is not None:
            fold.history.append(transition_row(fold.row["id"], decision.step, seen))
        if decision.alarm is not None:
            fold.alarms.append(_DoubleSubmit(decision.alarm, seen, _is_extra(fold, seen, book)))
        if seen.cost and decision.verdict not in _ELSEWHERE:
            fold.charges.append(Charge(fold.row["id"], seen.attempt or fold.view.attempt, seen.cost))
        event_ids = _add_events(fold, decision, seen)
        return decision.verdict, decision.step, event_ids

    def _due_times(
        self, tx: Transaction, decision: Decision, seen: Observation, policy: Policy, *, row: Row
    ) -> dict[str, Any]:
        changes: dict[str, Any] = {}
        if "provider_job_id" in decision.changes:
            first = seen.at + self._first_wait(tx, policy, row)
            changes |= {"next_submit_at": None, "submit_tries": 0, "next_poll_at": first}
        if "cancel_requested_at" in decision.changes and decision.job.provider_job_id is not None:
            changes["next_cancel_at"] = seen.at
        elif "provider_job_id" in decision.changes and decision.job.cancel_requested:
            changes["next_cancel_at"] = seen.at  # the wish was there before the run was known
        if decision.changes.get("outcome") or (decision.changes and is_terminal(decision.job.state)):
            changes |= dict.fromkeys(("next_submit_at", "next_poll_at", "next_cancel_at", "next_alarm_at"))
        if decision.stop_run:
            changes["next_cancel_at"] = seen.at
        if decision.ask_provider or _must_confirm(decision, seen) or _must_ask_cost(decision, seen, policy):
            changes["next_poll_at"] = seen.at
        return changes

    def _first_wait(self, tx: Transaction, policy: Policy, row: Row) -> timedelta:
        """The one place that does not know the adapter: its own limits begin with the first poll."""
        outlook = self.forecasts.outlook(tx, row["provider"], row["model"])
        return next_poll_wait(outlook, policy, number=0, age=timedelta(0), rng=self._rng)


def _must_confirm(decision: Decision, seen: Observation) -> bool:
    is_open = not is_terminal(decision.job.state) and decision.job.recorded_by is None
    return seen.must_confirm and is_open and decision.job.provider_job_id is not None


def _expect_files(tx: Transaction, fold: _Fold, decision: Decision) -> None:
    """A success that names files makes them due, in the same transaction."""
    links: Any = decision.changes.get("links")
    recorded = decision.changes.get("outcome") is not None
    if not links or not (recorded or decision.job.state is JobState.SUCCEEDED):
        return
    fold.files = artifact_rows(fold.row, links, attempt=decision.job.attempt, at=tx.now)
    fold.changes["artifacts"] = [artifact_document(row) for row in fold.files]


def _must_ask_cost(decision: Decision, seen: Observation, policy: Policy) -> bool:
    """A budget must not be blind: where the event that ended a job named no cost, its status is read once."""
    ended = "state" in decision.changes and is_terminal(decision.job.state)
    return policy.budget is not None and ended and seen.source is Source.WEBHOOK and decision.job.cost is None


def _is_extra(fold: _Fold, seen: Observation, book: RunBook) -> bool:
    """Whether the second run is this job's own, and so nobody's to wait for."""
    if seen.provider_job_id is None:
        return False
    owner = book.owner(fold.row["provider"], seen.provider_job_id)
    return owner == Owner(fold.row["id"], seen.attempt or fold.view.attempt)


def _runs_named(folds: Mapping[str, _Fold], pairs: Sequence[tuple[str, Observation]]) -> list[tuple[str, str]]:
    return [
        (folds[job_id].row["provider"], seen.provider_job_id)
        for job_id, seen in pairs
        if seen.provider_job_id is not None and job_id in folds
    ]


def _decide(tx: Transaction, fold: _Fold, seen: Observation, book: RunBook) -> Decision:
    """Decides; a run that another job's attempt owns is a second run of this one, whatever it claims.

    The run's id stays on the attempt it was named for, even where that attempt is no longer the current one.
    """
    provider, run = fold.row["provider"], seen.provider_job_id
    if run is None:
        return decide(fold.view, seen)
    ours = Owner(fold.row["id"], seen.attempt or fold.view.attempt)
    owner = book.owner(provider, run)
    if fold.view.provider_job_id is None and owner is not None and owner != ours:
        return _foreign_run(tx, fold, seen, owner)
    book.enter(provider, run, ours, at=seen.at)
    return decide(fold.view, seen)


def _foreign_run(tx: Transaction, fold: _Fold, seen: Observation, owner: Owner) -> Decision:
    whose = owner_in_words(tx, owner.job_id, tenant=fold.row["tenant"], attempt=owner.attempt)
    words = f"run {seen.provider_job_id} belongs to {whose}"
    step = Step(fold.view.state, seen.state or fold.view.state, applied=False, reason=words)
    return Decision(Verdict.OTHER_RUN, fold.view, step=step, alarm=words)


def _add_events(fold: _Fold, decision: Decision, seen: Observation) -> tuple[str, ...]:
    if not decision.events:
        return ()
    first = int(fold.changes.get("event_count") or fold.row["event_count"]) + 1
    fold.changes["event_count"] = first + len(decision.events) - 1
    document = job_document(fold.now_row, with_input=False)
    rows = [
        event_row(
            event_type,
            tenant=fold.row["tenant"],
            at=seen.at,
            data={"job": document},
            job_id=fold.row["id"],
            provider=fold.row["provider"],
            sequence=first + offset,
        )
        for offset, event_type in enumerate(decision.events)
    ]
    fold.events.extend(rows)
    return tuple(str(row["id"]) for row in rows)


def _write(tx: Transaction, folds: Sequence[_Fold], book: RunBook) -> None:
    update_jobs(tx, [JobUpdate(fold.row, fold.changes, fold.steps) for fold in folds if fold.changes])
    book.write(tx)
    insert_artifacts(tx, [row for fold in folds for row in fold.files])
    append_transitions(tx, [row for fold in folds for row in fold.history])
    append_events(tx, [row for fold in folds for row in fold.events])
    for fold in folds:
        for alarm in fold.alarms:
            _raise_alarm(tx, fold.row, alarm)


def _known(folds: Mapping[str, _Fold], job_id: str) -> _Fold:
    if job_id not in folds:
        raise NotFound(f"there is no job {job_id!r}")
    return folds[job_id]


def _raise_alarm(tx: Transaction, row: Row, alarm: _DoubleSubmit) -> None:
    seen = alarm.seen
    attempt, run = seen.attempt or row["attempt"], seen.provider_job_id
    if alarm.is_extra and run is not None:
        insert_extra_run(tx, job_id=row["id"], attempt=attempt, provider=row["provider"], run=run)
    evidence = {
        "provider": row["provider"],
        "attempt": attempt,
        "run": run,
        "source": str(seen.source),
        "event_id": seen.evidence.event_id,
    }
    dead_letter(
        tx,
        DOUBLE_SUBMIT,
        letter_ref(row["id"], run),
        reason=alarm.words,
        attempts=1,
        tenant=row["tenant"],
        job_id=row["id"],
        evidence=evidence,
    )


def letter_ref(job_id: str, run: str | None) -> str:
    """What a dead letter of a double submit is about: the job, and the run that is too many."""
    return f"{job_id}/{run}"
