"""Everything the proof is made of, gathered from three witnesses: the provider, the sink, the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from homing.demo.stage import Stage
from homing.demo.submission import Submission
from jobs.storage.audit import all_jobs, all_steps
from jobs.storage.database import Transaction
from jobs.storage.tallies import count_files, count_open_letters, totals
from webhooks.incoming.tallies import count_events


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
            inbox=totals(count_events(tx), "status"),
            dead_letters=sum(row["count"] for row in count_open_letters(tx)),
            files=totals(count_files(tx), "state"),
        )


def _jobs(tx: Transaction) -> list[JobFacts]:
    return [
        JobFacts(
            id=row["id"],
            state=row["state"],
            provider_job_id=row["provider_job_id"],
            finished_at=row["finished_at"],
            waits_for_person=row["review_reason"] is not None,
        )
        for row in all_jobs(tx)
    ]


def _steps(tx: Transaction) -> list[Step]:
    return [Step(row["job_id"], row["from_state"], row["to_state"], row["source"]) for row in all_steps(tx)]
