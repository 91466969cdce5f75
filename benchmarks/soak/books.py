"""Whether every job came home and was paid for once: the provider's books against ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from benchmarks.soak.place import Place
from benchmarks.soak.traffic import Sent
from homing.demo.books import billed_runs
from jobs.core.states import TERMINAL
from jobs.storage.schema import job_attempts, jobs
from webhooks.incoming.schema import inbox_events
from webhooks.outgoing.schema import deliveries


@dataclass(frozen=True, slots=True)
class Books:
    """What the end of a soak found.

    Attributes:
        submitted: Jobs the API took.
        lost: Of these, without an end.
        billed: Runs of the provider.
        ordered: Attempts of ours that a run answers to, and those that might have one.
        doubled: Attempts with more than one run.
        states: Jobs by state.
        inbox: Events by status.
        deliveries: By state.
        effects: Calls of the handler at its sink, and the jobs they were for.
    """

    submitted: int
    lost: int
    billed: int
    ordered: int
    doubled: int
    states: Mapping[str, int]
    inbox: Mapping[str, int]
    deliveries: Mapping[str, int]
    effects: tuple[int, int]

    @property
    def holds(self) -> bool:
        """No job lost, none paid for twice."""
        return self.lost == 0 and self.doubled == 0 and self.billed == self.ordered


def read_books(place: Place, sent: Sent) -> Books:
    """Asks the provider and the database."""
    ledger, sink = place.simulator.ledger(), place.simulator.sink()["jobs"]
    with place.database.read() as tx:
        ended = {row["id"] for row in tx.rows(sa.select(jobs.c.id).where(jobs.c.state.in_(sorted(TERMINAL))))}
        has_run = job_attempts.c.provider_job_id.is_not(None)
        ordered = tx.execute(sa.select(sa.func.count()).select_from(job_attempts).where(has_run)).scalar_one()
        counted = [_counted(tx, column) for column in (jobs.c.state, inbox_events.c.status, deliveries.c.state)]
    return Books(
        submitted=len(set(sent.jobs)),
        lost=len(set(sent.jobs) - ended),
        billed=ledger["runs_billed"],
        ordered=int(ordered),
        doubled=sum(1 for runs in billed_runs(ledger).values() if runs > 1),
        states=counted[0],
        inbox=counted[1],
        deliveries=counted[2],
        effects=(sum(sink.values()), len(sink)),
    )


def _counted(tx: Any, column: sa.Column[Any]) -> dict[str, int]:
    rows = tx.rows(sa.select(column.label("name"), sa.func.count().label("count")).group_by(column))
    return {str(row["name"]): int(row["count"]) for row in rows}
