"""Everything the proof is made of, gathered from three witnesses: the provider, the sink, the database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from homing.demo.stage import Stage
from homing.demo.submission import Submission
from jobs.storage.database import Transaction
from jobs.storage.schema import artifacts, job_transitions, jobs
from jobs.storage.tallies import count_open_letters
from webhooks.incoming.schema import inbox_events


@dataclass(frozen=True, slots=True)
class JobFacts:
    """A job as the database has it."""

    id: str
    state: str
    provider_job_id: str | None
    finished_at: datetime | None
    waits_for_person: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """A row of a job's history that was applied."""

    job_id: str
    before: str
    after: str
    source: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the witnesses say.

    Attributes:
        submissions: what was sent, and what the API answered.
        jobs: every job of the database.
        steps: applied history, oldest first.
        ledger: the provider's books.
        effects: calls at the sink, by job.
        inbox: received events by what became of them.
        dead_letters: open ones.
        files: result files by what became of them.
        effect_events: calls at the sink, by event.
        killed: processes of the fleet that died, by name; none: nobody was to.
    """

    submissions: Sequence[Submission]
    jobs: Mapping[str, JobFacts]
    steps: Sequence[Step]
    ledger: Mapping[str, Any]
    effects: Mapping[str, int]
    inbox: Mapping[str, int] = field(default_factory=dict)
    dead_letters: int = 0
    files: Mapping[str, int] = field(default_factory=dict)
    effect_events: Mapping[str, int] = field(default_factory=dict)
    killed: Mapping[str, int] | None = None


def gather(stage: Stage, submissions: Sequence[Submission], *, killed: Mapping[str, int] | None = None) -> Evidence:
    """Ask all three; who died is known to whoever killed."""
    ledger, sink = stage.simulator.ledger(), stage.simulator.sink()
    with stage.database.read() as tx:
        return Evidence(
            submissions=submissions,
            jobs={job.id: job for job in _jobs(tx)},
            steps=_steps(tx),
            ledger=ledger,
            effects=sink["jobs"],
            effect_events=sink["events"],
            killed=killed,
            inbox=_counted(tx, inbox_events.c.status),
            dead_letters=sum(row["count"] for row in count_open_letters(tx)),
            files=_counted(tx, artifacts.c.state),
        )


def _jobs(tx: Transaction) -> list[JobFacts]:
    columns = (jobs.c.id, jobs.c.state, jobs.c.provider_job_id, jobs.c.finished_at, jobs.c.review_reason)
    return [
        JobFacts(
            id=row["id"],
            state=row["state"],
            provider_job_id=row["provider_job_id"],
            finished_at=row["finished_at"],
            waits_for_person=row["review_reason"] is not None,
        )
        for row in tx.rows(sa.select(*columns))
    ]


def _steps(tx: Transaction) -> list[Step]:
    columns = job_transitions.c
    chosen = (columns.job_id, columns.from_state, columns.to_state, columns.source)
    rows = tx.rows(sa.select(*chosen).where(columns.applied).order_by(columns.id))
    return [Step(row["job_id"], row["from_state"], row["to_state"], row["source"]) for row in rows]


def _counted(tx: Transaction, column: sa.Column[str]) -> Counter[str]:
    rows = tx.rows(sa.select(column.label("name"), sa.func.count().label("count")).group_by(column))
    return Counter({str(row["name"]): row["count"] for row in rows})
