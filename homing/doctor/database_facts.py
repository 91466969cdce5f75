"""Reads the database for the doctor: a handful of counts and ages, each from an index of what is open."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from homing.doctor.facts import DatabaseFacts, Silence
from homing.health.fleet import WRITER_STUCK, oldest_delivery, oldest_webhook
from jobs.core.states import OPEN
from jobs.services.letter_growth import ALARM as LETTER_ALARM
from jobs.storage import tallies
from jobs.storage.alarms import raised_since
from jobs.storage.database import Database, Transaction
from jobs.storage.jobs import DUE_COLUMNS
from jobs.storage.schema import handler_runs, jobs
from reconciler.heartbeats import list_heartbeats
from webhooks.incoming.schema import InboxStatus, inbox_events

#: A lease that ran out this long ago was not released by whoever held it.
_LONG_AGO = timedelta(seconds=60)


def read_database(database: Database) -> DatabaseFacts:
    """Read everything in one transaction.

    Raises:
        Unavailable: it does not answer.
    """
    with database.read() as tx:
        accounts = tallies.list_accounts(tx)
        return DatabaseFacts(
            jobs=_totals(tallies.count_jobs(tx), "state"),
            reviews=_totals(tallies.count_reviews(tx), "review_reason"),
            dead_letters=_totals(tallies.count_open_letters(tx), "kind"),
            letters_surge_s=_age_s(tx, raised_since(tx, LETTER_ALARM)),
            heartbeats=_silences(tx),
            due_s=_due_ages(tx),
            unheard_oldest_s=_age_s(tx, tallies.oldest_unheard(tx)),
            outbox_oldest_s=_age_s(tx, tallies.oldest_unrelayed(tx)),
            inbox_oldest_s=_age_s(tx, oldest_webhook(tx)),
            delivery_oldest_s=_age_s(tx, oldest_delivery(tx)),
            writer=_stuck_writer(database),
            parked=_count(tx, inbox_events.c.status == InboxStatus.PARKED),
            overdue_leases=_overdue_leases(tx),
            paused=tuple(sorted(name for name, account in accounts.items() if account["paused_at"])),
            outages={name: _seconds(tx.now - row["outage_at"]) for name, row in tallies.list_outages(tx).items()},
            failing_handlers=_failing_handlers(tx),
        )


def _totals(rows: Sequence[tallies.Tally], by: str) -> dict[str, int]:
    totals: dict[str, int] = {}
    for row in rows:
        totals[row[by]] = totals.get(row[by], 0) + row["count"]
    return totals


def _silences(tx: Transaction) -> tuple[Silence, ...]:
    return tuple(
        Silence(beat.name, _seconds(tx.now - beat.beat_at), beat.is_stale(tx.now)) for beat in list_heartbeats(tx)
    )


def _due_ages(tx: Transaction) -> dict[str, float]:
    """For each kind of work that is due, how long its oldest piece has been."""
    oldest = {kind: tallies.oldest_due(tx, kind) for kind in DUE_COLUMNS}
    return {f"{kind}s": _seconds(tx.now - since) for kind, since in oldest.items() if since is not None}


def _stuck_writer(database: Database) -> tuple[int, float] | None:
    holder = database.find_writer()
    if holder is None or holder.for_s <= WRITER_STUCK.total_seconds():
        return None
    return holder.pid, round(holder.for_s, 1)


def _overdue_leases(tx: Transaction) -> int:
    ran_out = jobs.c.lease_token.is_not(None) & (jobs.c.lease_until < tx.now - _LONG_AGO)
    return _count(tx, ran_out & jobs.c.state.in_(sorted(OPEN)))


def _failing_handlers(tx: Transaction) -> dict[str, int]:
    is_failing = handler_runs.c.next_try_at.is_not(None) & handler_runs.c.error.is_not(None)
    statement = sa.select(handler_runs.c.handler, sa.func.count().label("count")).where(is_failing)
    return {row["handler"]: row["count"] for row in tx.rows(statement.group_by(handler_runs.c.handler))}


def _count(tx: Transaction, condition: sa.ColumnElement[bool]) -> int:
    found: Any = tx.execute(sa.select(sa.func.count()).where(condition)).scalar_one()
    return int(found)


def _age_s(tx: Transaction, since: datetime | None) -> float | None:
    return None if since is None else _seconds(tx.now - since)


def _seconds(span: timedelta) -> float:
    return round(max(0.0, span.total_seconds()), 1)
