"""The accounts at providers, as their users and operators see them: how they are doing, pause, resume."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jobs.core import instants
from jobs.core.standing import error_rate, heal_s, poll_share
from jobs.core.states import OPEN, JobState
from jobs.services.accounts.spending import spend_document
from jobs.services.creation import provider_for, visible_providers
from jobs.services.documents import Document, Row
from jobs.services.runtime import Runtime
from jobs.storage.accounts import lock_account, update_account
from jobs.storage.database import Transaction
from jobs.storage.learned import list_standings
from jobs.storage.tallies import count_jobs, count_transitions, homecomings, list_accounts


def read_accounts(runtime: Runtime, *, tenant: str) -> Document:
    """Every provider entry the tenant may use, with its own jobs counted."""
    with runtime.database.read() as tx:
        documents = _documents(runtime, tx, tenant)
    return {"data": documents, "next_cursor": None}


def pause(runtime: Runtime, name: str, *, tenant: str) -> Document:
    """Sends no more requests to a provider until it is resumed; its webhooks are still taken.

    Raises:
        NotFound: There is no such provider for this tenant.
    """
    return _set(runtime, name, tenant=tenant, paused=True)


def resume(runtime: Runtime, name: str, *, tenant: str) -> Document:
    """Ends a pause.

    Raises:
        NotFound: There is no such provider for this tenant.
    """
    return _set(runtime, name, tenant=tenant, paused=False)


def _set(runtime: Runtime, name: str, *, tenant: str, paused: bool) -> Document:
    provider_for(runtime, tenant, name)
    with runtime.database.write() as tx:
        before = lock_account(tx, name)["paused_at"]
        update_account(tx, name, paused_at=(before or tx.now) if paused else None)
        return next(document for document in _documents(runtime, tx, tenant) if document["name"] == name)


def _documents(runtime: Runtime, tx: Transaction, tenant: str) -> list[Document]:
    accounts, standings = list_accounts(tx), list_standings(tx)
    states = count_jobs(tx, tenant=tenant)
    homes = homecomings(count_transitions(tx, tenant=tenant))
    return [
        {
            **_document(runtime, name, accounts.get(name), states=states, homes=homes),
            **_standing(standings.get(name)),
            "spend": spend_document(tx, runtime.providers[name], tenant=tenant),
        }
        for name in visible_providers(runtime, tenant)
    ]


def _document(
    runtime: Runtime, name: str, account: Row | None, *, states: Iterable[Row], homes: Iterable[Row]
) -> Document:
    counts = {row["state"]: row["count"] for row in states if row["provider"] == name}
    return {
        "name": name,
        "adapter": runtime.providers[name].config.adapter,
        "paused_at": _text(account, "paused_at"),
        "blocked_until": _text(account, "blocked_until"),
        "outage": outage_document(account),
        "backlog": sum(counts.get(state, 0) for state in OPEN),
        "jobs": {str(state): counts.get(state, 0) for state in JobState},
        "home_by": {row["source"]: row["count"] for row in homes if row["provider"] == name},
    }


def outage_document(account: Row | None) -> Document | None:
    """Since when a provider is away, and why it is thought to be; None where it is not."""
    if account is None or account["outage_at"] is None:
        return None
    return {
        "since": instants.to_text(account["outage_at"]),
        "reason": account["outage_reason"] or "",
        "probes": account["probes"],
        "next_probe_at": instants.to_text(account["next_probe_at"]),
    }


def _standing(known: Row | None) -> Document:
    """Of the account's newest ends, whoever's: how many needed no poll, and how long a lost webhook went unnoticed."""
    recent = known["recent"] if known else []
    polled, healed = poll_share(recent), heal_s(recent)
    return {
        "webhook_share": None if polled is None else round(1 - polled, 3),
        "webhooks_degraded_at": _text(known, "degraded_at"),
        "heal_s": None if healed is None else {"median": healed[0], "worst": healed[1]},
        "error_rate": error_rate(recent),
    }


def _text(account: Row | None, column: str) -> str | None:
    at: Any = account and account[column]
    return instants.to_text(at) if at else None
