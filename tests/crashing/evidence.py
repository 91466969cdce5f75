"""What the three witnesses say after a round: the provider's ledger, the sinks of effects, the database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from jobs.core.states import OPEN
from jobs.storage.database import Transaction
from jobs.storage.metadata import metadata
from jobs.storage.schema import (
    artifacts,
    handler_runs,
    job_attempts,
    job_transitions,
    jobs,
    outbox,
    provider_accounts,
)
from tests.crashing.letters import count_announced, list_done, list_letters
from tests.crashing.load import Acked
from tests.crashing.person import Seen
from tests.crashing.stage import Stage
from webhooks.incoming.schema import inbox_events
from webhooks.outgoing.schema import deliveries

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything an audit judges.

    Attributes:
        acked: Jobs the API has confirmed, by id.
        conflicts: Keys that were answered with two different jobs.
        jobs: ``id, state, review_reason``.
        attempts: ``job_id, number, provider_job_id, token``.
        steps: Applied history, oldest first: ``job_id, from_state, to_state``.
        events: ``id, type, job_id, sequence, position``.
        effects: Rows the transactional handler wrote, by event.
        told: Calls the plain handler made, by event.
        delivered: Calls the subscribed endpoint and the callbacks got, by event.
        deliveries: ``event_id, state, is_callback``.
        inbox: Delivery ids of the rows.
        files: ``state, reason``.
        letters: Every dead letter: ``id, kind, ref, job_id, reason, evidence`` and what was decided.
        announced: How often each of them was told of, by id.
        done: Steps that are done, and when they were.
        seen: What the person in charge has seen.
        unfinished: Rows that still wait for something, by kind.
        ledger: The provider's books.
    """

    acked: Mapping[str, Acked]
    conflicts: Sequence[str]
    jobs: Sequence[Row]
    attempts: Sequence[Row]
    steps: Sequence[Row]
    events: Sequence[Row]
    effects: Mapping[str, int]
    told: Mapping[str, int]
    delivered: Mapping[str, int]
    deliveries: Sequence[Row]
    inbox: frozenset[str]
    files: Sequence[Row]
    letters: Sequence[Row]
    announced: Mapping[str, int]
    done: Mapping[str, str]
    seen: Seen
    unfinished: Mapping[str, int]
    ledger: Mapping[str, Any]


def gather(stage: Stage, acked: Mapping[str, Acked], conflicts: Sequence[str], *, seen: Seen) -> Evidence:
    """Asks all of them."""
    ledger, told = _ledger(stage), stage.simulator.sink()["events"]
    delivered = Counter(stage.receiver.events()) + Counter(stage.refuser.events())
    with stage.database.read() as tx:
        return Evidence(
            acked=acked,
            conflicts=conflicts,
            jobs=_rows(tx, jobs, "id", "state", "review_reason"),
            attempts=_rows(tx, job_attempts, "job_id", "number", "provider_job_id", "token"),
            steps=_steps(tx),
            events=_rows(tx, outbox, "id", "type", "job_id", "sequence", "position"),
            effects=_effects(tx),
            told=told,
            delivered=delivered,
            deliveries=_deliveries(tx),
            inbox=frozenset(row["delivery_id"] for row in _rows(tx, inbox_events, "delivery_id")),
            files=_rows(tx, artifacts, "id", "state", "reason"),
            letters=list_letters(tx),
            announced=count_announced(tx),
            done=list_done(tx),
            seen=seen,
            unfinished=count_unfinished(tx),
            ledger=ledger,
        )


def _ledger(stage: Stage) -> dict[str, Any]:
    """The books of both providers, as one's."""
    ledger = stage.simulator.ledger()
    runs, webhooks = stage.clinic.books()
    totals = {**ledger["totals"], "submits": ledger["totals"]["submits"] + stage.clinic.submits}
    return {
        **ledger,
        "runs": [*ledger["runs"], *runs],
        "webhooks": [*ledger["webhooks"], *webhooks],
        "runs_billed": ledger["runs_billed"] + len(runs),
        "totals": totals,
    }


def count_unfinished(tx: Transaction) -> dict[str, int]:
    """Rows that something must still happen to, or that somebody holds, by kind; only what there is.

    Found by the names of columns, so that a table which is added tomorrow is looked into as well.
    """
    wanted: dict[str, sa.ColumnElement[bool]] = {
        f"{column.table.name}.{column.name}": column.is_not(None) for column in _columns(_is_due)
    }
    wanted |= {f"{column.table.name}.{column.name}": column > tx.now for column in _columns(_is_lease)}
    wanted |= {
        "jobs open": jobs.c.state.in_(sorted(OPEN)),
        "events not relayed": outbox.c.position.is_(None),
        "handlers not done": handler_runs.c.done_at.is_(None),
        "inbox leased": inbox_events.c.lease_token.is_not(None),
        "deliveries leased": deliveries.c.lease_token.is_not(None),
    }
    counted = {name: tx.execute(_count(condition)).scalar_one() for name, condition in wanted.items()}
    return {name: count for name, count in counted.items() if count}


def _columns(is_wanted: Callable[[str], bool]) -> list[sa.Column[Any]]:
    tables = [table for table in metadata.tables.values() if table is not provider_accounts]
    return [column for table in tables for column in table.c if is_wanted(column.name)]


def _is_due(name: str) -> bool:
    return name.startswith("next_") and name.endswith("_at")


def _is_lease(name: str) -> bool:
    return name == "lease_until"


def _count(condition: sa.ColumnElement[bool]) -> sa.Select[Any]:
    return sa.select(sa.func.count()).where(condition)


def _rows(tx: Transaction, table: sa.Table, *names: str) -> list[dict[str, Any]]:
    return tx.rows(sa.select(*(table.c[name] for name in names)))


def _steps(tx: Transaction) -> list[dict[str, Any]]:
    columns = job_transitions.c
    chosen = sa.select(columns.job_id, columns.from_state, columns.to_state)
    return tx.rows(chosen.where(columns.applied).order_by(columns.id))


def _deliveries(tx: Transaction) -> list[dict[str, Any]]:
    columns = deliveries.c
    is_callback = columns.url.is_not(None).label("is_callback")
    return tx.rows(sa.select(columns.id, columns.event_id, columns.event_type, columns.state, is_callback))


def _effects(tx: Transaction) -> dict[str, int]:
    statement = sa.text("SELECT event_id, count(*) AS calls FROM crash_effects GROUP BY event_id")
    return {str(row["event_id"]): int(row["calls"]) for row in tx.rows(statement)}
