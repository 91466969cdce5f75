"""Counts and ages, for people and for monitoring: what the rows say of the whole, at the moment of asking."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from jobs.core.states import OPEN, TERMINAL
from jobs.storage.database import Transaction
from jobs.storage.dead_letters import is_open
from jobs.storage.jobs import DUE_COLUMNS
from jobs.storage.output_schema import output_streams
from jobs.storage.relay import IS_WAITING
from jobs.storage.schema import (
    artifacts,
    dead_letters,
    extra_runs,
    handler_runs,
    job_transitions,
    jobs,
    outbox,
    provider_accounts,
)

Tally = dict[str, Any]

_COUNT = sa.func.count().label("count")


def totals(rows: Iterable[Tally], by: str) -> dict[str, int]:
    """What was counted, by one of the things it was counted by."""
    found: dict[str, int] = {}
    for row in rows:
        found[str(row[by])] = found.get(str(row[by]), 0) + row["count"]
    return found


def count_jobs(tx: Transaction, *, tenant: str | None = None) -> list[Tally]:
    """Jobs by provider and state."""
    return tx.rows(_by(jobs.c.provider, jobs.c.state, of=tenant))


def count_reviews(tx: Transaction, *, among: Collection[str] | None = None) -> list[Tally]:
    """Jobs that wait for a person, by reason; of some states, or of all."""
    reason = jobs.c.review_reason
    statement = sa.select(reason, _COUNT).where(reason.is_not(None)).group_by(reason)
    return tx.rows(statement if among is None else statement.where(jobs.c.state.in_(sorted(among))))


def count_transitions(tx: Transaction, *, tenant: str | None = None) -> list[Tally]:
    """Applied steps by provider, new state and whose word it was."""
    columns = (jobs.c.provider, job_transitions.c.to_state, job_transitions.c.source)
    statement = (
        sa.select(*columns, _COUNT)
        .join(jobs, jobs.c.id == job_transitions.c.job_id)
        .where(job_transitions.c.applied)
        .group_by(*columns)
    )
    return tx.rows(statement if tenant is None else statement.where(jobs.c.tenant == tenant))


def homecomings(transitions: list[Tally]) -> list[Tally]:
    """Of counted transitions, those that ended a job, by provider and source."""
    totals: dict[tuple[str, str], int] = {}
    for row in transitions:
        if row["to_state"] in TERMINAL:
            key = (row["provider"], row["source"])
            totals[key] = totals.get(key, 0) + row["count"]
    return [{"provider": provider, "source": source, "count": count} for (provider, source), count in totals.items()]


def count_open_letters(tx: Transaction) -> list[Tally]:
    """Dead letters that wait for a decision, by kind."""
    kind = dead_letters.c.kind
    return tx.rows(sa.select(kind, _COUNT).where(is_open()).group_by(kind))


def count_letters_after(tx: Transaction, letter_id: str = "") -> list[Tally]:
    """Dead letters with this id or a later one, by kind, whatever was decided about them since."""
    kind = dead_letters.c.kind
    return tx.rows(sa.select(kind, _COUNT).where(dead_letters.c.id >= letter_id).group_by(kind))


def count_files(tx: Transaction) -> list[Tally]:
    """Result files by what became of them."""
    state = artifacts.c.state
    return tx.rows(sa.select(state, _COUNT).group_by(state))


def count_failing_handlers(tx: Transaction) -> list[Tally]:
    """Events that failed at a handler and wait for another try, by handler."""
    handler = handler_runs.c.handler
    is_failing = handler_runs.c.next_try_at.is_not(None) & handler_runs.c.error.is_not(None)
    return tx.rows(sa.select(handler, _COUNT).where(is_failing).group_by(handler))


def count_lost_leases(tx: Transaction, *, before: datetime) -> int:
    """Open jobs whose lease ran out before then, and was not given back."""
    ran_out = jobs.c.lease_token.is_not(None) & (jobs.c.lease_until < before)
    statement = sa.select(sa.func.count()).where(ran_out & jobs.c.state.in_(sorted(OPEN)))
    return int(tx.execute(statement).scalar_one())


def oldest_unrelayed(tx: Transaction) -> datetime | None:
    """When the oldest event that is still to be relayed happened."""
    statement = sa.select(outbox.c.occurred_at).where(IS_WAITING).order_by(outbox.c.row_id).limit(1)
    row = tx.row(statement)
    return row["occurred_at"] if row else None


def oldest_due(tx: Transaction, kind: str) -> datetime | None:
    """Since when the longest due work of a kind has waited; that of a paused, blocked or absent provider may wait."""
    due_at = jobs.c[DUE_COLUMNS[kind]]
    held = sa.select(provider_accounts.c.name).where(
        sa.or_(
            provider_accounts.c.paused_at.is_not(None),
            provider_accounts.c.blocked_until > tx.now,
            provider_accounts.c.outage_at.is_not(None),
            provider_accounts.c.pace_until > tx.now,
        )
    )
    statement = sa.select(sa.func.min(due_at).label("due_at")).where(
        due_at.is_not(None), due_at <= tx.now, jobs.c.provider.not_in(held)
    )
    row = tx.row(statement)
    return row["due_at"] if row else None


def oldest_unheard(tx: Transaction) -> datetime | None:
    """Since when the longest due stream of output has waited for somebody to listen; a paused account's may wait."""
    held = sa.select(provider_accounts.c.name).where(provider_accounts.c.paused_at.is_not(None))
    is_free = sa.or_(output_streams.c.lease_until.is_(None), output_streams.c.lease_until <= tx.now)
    due_at = output_streams.c.next_read_at
    since = sa.func.coalesce(output_streams.c.lease_until, due_at)  # its reader died then
    statement = sa.select(sa.func.min(since).label("due_at")).where(
        due_at.is_not(None), due_at <= tx.now, is_free, output_streams.c.provider.not_in(held)
    )
    row = tx.row(statement)
    return row["due_at"] if row else None


def list_accounts(tx: Transaction) -> dict[str, Tally]:
    """What is known of each account, by name."""
    return {row["name"]: row for row in tx.rows(sa.select(provider_accounts))}


def list_outages(tx: Transaction) -> dict[str, Tally]:
    """The accounts that are away, by name, where somebody waits for them: no other is probed, or can come back."""
    name = provider_accounts.c.name
    has_jobs = sa.exists().where(jobs.c.provider == name, jobs.c.state.in_(sorted(OPEN)))
    has_runs = sa.exists().where(extra_runs.c.provider == name, extra_runs.c.next_check_at.is_not(None))
    is_away = provider_accounts.c.outage_at.is_not(None)
    statement = sa.select(provider_accounts).where(is_away, sa.or_(has_jobs, has_runs)).order_by(name)
    return {row["name"]: row for row in tx.rows(statement)}


def _by(*columns: sa.ColumnElement[Any], of: str | None) -> sa.Select[Any]:
    statement = sa.select(*columns, _COUNT).group_by(*columns)
    return statement if of is None else statement.where(jobs.c.tenant == of)
