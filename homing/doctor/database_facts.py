"""Reads the database for the doctor: a handful of counts and ages, each from an index of what is open."""

from __future__ import annotations

from datetime import datetime, timedelta

from homing.doctor.facts import DatabaseFacts, Silence
from homing.health.fleet import WRITER_STUCK
from jobs.services.letters.growth import ALARM as LETTER_ALARM
from jobs.storage import tallies
from jobs.storage.alarms import raised_since
from jobs.storage.database import Database, Transaction
from jobs.storage.jobs import DUE_COLUMNS
from reconciler.heartbeats import list_heartbeats
from webhooks.incoming.tallies import count_parked, oldest_webhook
from webhooks.outgoing.tallies import oldest_delivery

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
            jobs=tallies.totals(tallies.count_jobs(tx), "state"),
            reviews=tallies.totals(tallies.count_reviews(tx), "review_reason"),
            dead_letters=tallies.totals(tallies.count_open_letters(tx), "kind"),
            letters_surge_s=_age_s(tx, raised_since(tx, LETTER_ALARM)),
            heartbeats=_silences(tx),
            due_s=_due_ages(tx),
            unheard_oldest_s=_age_s(tx, tallies.oldest_unheard(tx)),
            outbox_oldest_s=_age_s(tx, tallies.oldest_unrelayed(tx)),
            inbox_oldest_s=_age_s(tx, oldest_webhook(tx)),
            delivery_oldest_s=_age_s(tx, oldest_delivery(tx)),
            writer=_stuck_writer(database),
            parked=count_parked(tx),
            overdue_leases=tallies.count_lost_leases(tx, before=tx.now - _LONG_AGO),
            paused=tuple(sorted(name for name, account in accounts.items() if account["paused_at"])),
            outages={name: _seconds(tx.now - row["outage_at"]) for name, row in tallies.list_outages(tx).items()},
            failing_handlers=tallies.totals(tallies.count_failing_handlers(tx), "handler"),
        )


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


def _age_s(tx: Transaction, since: datetime | None) -> float | None:
    return None if since is None else _seconds(tx.now - since)


def _seconds(span: timedelta) -> float:
    return round(max(0.0, span.total_seconds()), 1)
