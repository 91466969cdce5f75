"""Reads the database for the doctor: a handful of counts and ages, each from an index of what is open."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from homing.doctor.facts import DatabaseFacts, Silence
from jobs.core.states import OPEN
from jobs.storage.database import Database, Transaction
from jobs.storage.schema import dead_letters, jobs, outbox, provider_accounts
from reconciler.heartbeats import list_heartbeats
from webhooks.incoming.schema import InboxStatus, inbox_events

_DUE = {
    "submits": jobs.c.next_submit_at,
    "polls": jobs.c.next_poll_at,
    "cancels": jobs.c.next_cancel_at,
    "alarms": jobs.c.next_alarm_at,
}
#: A lease that ran out this long ago was not released by whoever held it.
_LONG_AGO = timedelta(seconds=60)


def read_database(database: Database) -> DatabaseFacts:
    """Read everything in one transaction.

    Raises:
        Unavailable: it does not answer.
    """
    with database.read() as tx:
        return DatabaseFacts(
            jobs=_count(tx, jobs.c.state),
            reviews=_count(tx, jobs.c.review_reason, jobs.c.state.in_(sorted(OPEN))),
            dead_letters=_count(
                tx, dead_letters.c.kind, dead_letters.c.redriven_at.is_(None), dead_letters.c.discarded_at.is_(None)
            ),
            heartbeats=_silences(tx),
            due_s=_due_ages(tx),
            outbox_oldest_s=_age_s(tx, _oldest_event(tx)),
            inbox_oldest_s=_age_s(tx, _oldest(tx, inbox_events.c.received_at, _is_waiting())),
            parked=_count(tx, inbox_events.c.status, inbox_events.c.status == InboxStatus.PARKED)[InboxStatus.PARKED],
            overdue_leases=_overdue_leases(tx),
            paused=_paused(tx),
        )


def _count(tx: Transaction, column: sa.Column[Any], *conditions: sa.ColumnElement[bool]) -> Counter[str]:
    statement = sa.select(column.label("name"), sa.func.count().label("count"))
    rows = tx.rows(statement.where(column.is_not(None), *conditions).group_by(column))
    return Counter({str(row["name"]): row["count"] for row in rows})


def _silences(tx: Transaction) -> tuple[Silence, ...]:
    return tuple(
        Silence(beat.name, _seconds(tx.now - beat.beat_at), beat.is_stale(tx.now)) for beat in list_heartbeats(tx)
    )


def _due_ages(tx: Transaction) -> dict[str, float]:
    """How long the oldest piece of each kind has been due; a paused or blocked provider's is not counted."""
    held = sa.select(provider_accounts.c.name).where(
        provider_accounts.c.paused_at.is_not(None) | (provider_accounts.c.blocked_until > tx.now)
    )
    ages = {}
    for kind, column in _DUE.items():
        oldest = _oldest(tx, column, column <= tx.now, jobs.c.provider.not_in(held))
        if oldest is not None:
            ages[kind] = _seconds(tx.now - oldest)
    return ages


def _oldest_event(tx: Transaction) -> datetime | None:
    waiting = sa.select(outbox.c.occurred_at).where(outbox.c.relayed_at.is_(None), outbox.c.parked_at.is_(None))
    found: datetime | None = tx.execute(waiting.order_by(outbox.c.row_id).limit(1)).scalar_one_or_none()
    return found


def _is_waiting() -> sa.ColumnElement[bool]:
    return inbox_events.c.next_try_at.is_not(None) & (inbox_events.c.status == InboxStatus.ACCEPTED)


def _oldest(tx: Transaction, column: sa.Column[Any], *conditions: sa.ColumnElement[bool]) -> datetime | None:
    statement = sa.select(column).where(*conditions).order_by(column).limit(1)
    found: datetime | None = tx.execute(statement).scalar_one_or_none()
    return found


def _overdue_leases(tx: Transaction) -> int:
    columns = jobs.c
    ran_out = columns.lease_token.is_not(None) & (columns.lease_until < tx.now - _LONG_AGO)
    is_open = columns.state.in_(sorted(OPEN))
    found: int = tx.execute(sa.select(sa.func.count()).where(ran_out, is_open)).scalar_one()
    return found


def _paused(tx: Transaction) -> tuple[str, ...]:
    columns = provider_accounts.c
    rows = tx.rows(sa.select(columns.name).where(columns.paused_at.is_not(None)).order_by(columns.name))
    return tuple(row["name"] for row in rows)


def _age_s(tx: Transaction, since: datetime | None) -> float | None:
    return None if since is None else _seconds(tx.now - since)


def _seconds(span: timedelta) -> float:
    return round(max(0.0, span.total_seconds()), 1)
