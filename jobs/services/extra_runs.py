"""Stopping a run that nobody waits for: the second one of a submit, or that of an attempt which was given up.

It costs money, and it may be somebody else's. So it is canceled only after the provider, asked with our own credential,
shows it, and it is ours: the provider names our token or key with it; where it names none but can search, our search
finds it; where it can do neither, it stands as what came in answer to our attempt. It is never canceled while another
attempt owns it, or while it is the run whose state its job has. All of this is looked at again in the transaction
right before the cancel. Afterwards it is read until it has ended, for its cost.

What cannot be proven or stopped stays with the dead letter that reported it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

import structlog

from jobs.core.errors import JobsError
from jobs.core.states import is_terminal
from jobs.net.http import within
from jobs.providers.port import AlreadyFinished, Gone, Report
from jobs.services.accounts import budgets, outages
from jobs.services.accounts.spending import book_extra
from jobs.services.observe import DOUBLE_SUBMIT, letter_ref
from jobs.services.run_book import owner_in_words
from jobs.services.runtime import ProviderEntry, Runtime
from jobs.services.work import ASK_WITHIN_S, LEASE, MAX_STARTS, gives_up, wait_after
from jobs.storage.attempts import Charge, find_attempt_by_run, get_attempt, raise_costs
from jobs.storage.database import Transaction
from jobs.storage.dead_letters import add_to_reason
from jobs.storage.extra_runs import (
    claim_extra_runs,
    end_extra_run,
    find_extra_run_by_id,
    has_due_extra_runs,
    take_extra_run,
)
from jobs.storage.jobs import Row, lock_job
from jobs.storage.premise import Premise, always
from jobs.telemetry import span

# A run just begun may not be readable, or listed, everywhere at once.
_LAG = timedelta(seconds=60)
_log = structlog.get_logger(__name__)


class Stopped(StrEnum):
    """What came of one message."""

    NOTHING = "nothing"  # not due, not ours to do, or the account is not to be asked now
    RETRY = "retry"
    CANCELED = "canceled"  # the provider took the cancel; whether the run ended is read later
    ENDED = "ended"
    NOT_OURS = "not_ours"
    LEFT = "left"  # it may run on; a person has the dead letter


@dataclass(frozen=True, slots=True)
class _Case:
    """An extra run under way: its row as taken, its attempt and its job's input, and the account."""

    extra: Row
    attempt: Row
    entry: ProviderEntry
    address: str
    tenant: str

    @property
    def run(self) -> str:
        return str(self.extra["provider_job_id"])


@dataclass(frozen=True, slots=True)
class _Ruling:
    """What was found out: settled for a reason, or to be looked at again.

    Attributes:
        may_lag: A provider may say so of a run that it has only just begun.
    """

    result: Stopped
    reason: str
    report: Report | None = None
    error: Exception | None = None
    may_lag: bool = False


def claim_due(runtime: Runtime, limit: int, *, premise: Premise = always) -> list[tuple[str, str]]:
    """Leases extra runs that are due: (id, lease token) of each.

    Raises:
        Stale: The premise failed.
    """
    with runtime.database.read() as tx:
        if not has_due_extra_runs(tx):
            return []
    with runtime.database.write() as tx:
        premise(tx)
        return claim_extra_runs(tx, limit, until=tx.now + LEASE)


def stop_extra_run(runtime: Runtime, extra_id: str, lease_token: str | None = None) -> Stopped:
    """Does the next thing about an extra run: looks whether it is ours, cancels it, or sees that it has ended.

    Args:
        runtime: The process's parts.
        extra_id: The row.
        lease_token: Of the claim that sent the message; None: the row is claimed here, if it is free and due.

    Raises:
        Unavailable: The database is away; what was committed stands, and the sweep comes back to it.
    """
    with span("stop_extra_run", clock=runtime.clock):
        with runtime.database.write() as tx:
            case = _begin(tx, runtime, extra_id, lease_token=lease_token)
        if case is None:
            return Stopped.NOTHING
        with within(ASK_WITHIN_S):
            ruling = _look(case) or _cancel(runtime, case)
        with runtime.database.write() as tx:
            result = _record(tx, runtime, case, ruling)
    _log.info("extra run", job=case.extra["job_id"], run=case.run, result=str(result), reason=ruling.reason)
    return result


def _begin(tx: Transaction, runtime: Runtime, extra_id: str, *, lease_token: str | None) -> _Case | None:
    """Locks the account, then the job, then the row: the order everywhere."""
    known = find_extra_run_by_id(tx, extra_id)
    entry = runtime.providers.get(known["provider"]) if known else None
    if known is None or entry is None or not _may_ask(tx, entry, extra_id):
        return None  # what a sweep has claimed is due again when that lease ends
    job = lock_job(tx, known["job_id"])
    extra = take_extra_run(tx, extra_id, held=lease_token, until=tx.now + LEASE)
    if extra is None:
        return None
    budgets.take(tx, entry, 1)
    address = entry.adapter.capabilities.address(extra["provider_job_id"], job["input"])
    case = _Case(extra, get_attempt(tx, job["id"], extra["attempt"]), entry, address, job["tenant"])
    ruling = _judge_before(tx, case)
    if ruling is not None:
        _settle(tx, case, ruling)
        return None
    return case


def _may_ask(tx: Transaction, entry: ProviderEntry, extra_id: str) -> bool:
    """Within the account's budgets; while its provider is away only as the probe, where no job has a better one."""
    if budgets.find_room(tx, entry, limit=1) >= 1:
        return True
    return not outages.has_due_work(tx, entry.name) and outages.take_probe(tx, entry.name, extra_id)


def _judge_before(tx: Transaction, case: _Case) -> _Ruling | None:
    """What is settled without asking the provider."""
    foreign = _owned_by_another(tx, case)
    if foreign is not None:
        return _Ruling(Stopped.NOT_OURS, foreign)
    if case.extra["starts"] > MAX_STARTS:
        return _Ruling(Stopped.LEFT, f"{MAX_STARTS} starts of stopping it never came to their end")
    return None


def _owned_by_another(tx: Transaction, case: _Case) -> str | None:
    """Whose run it is after all; locks the job, so that nobody can make the run its own meanwhile."""
    extra, job = case.extra, lock_job(tx, case.extra["job_id"])
    if job["provider_job_id"] == case.run:
        return "it is the job's own run"
    owner = find_attempt_by_run(tx, extra["provider"], case.run)
    if owner is None or (owner["job_id"], owner["number"]) == (extra["job_id"], extra["attempt"]):
        return None
    whose = owner_in_words(tx, owner["job_id"], tenant=job["tenant"], attempt=owner["number"])
    return f"it belongs to {whose}"


# Is it ours? -------------------------------------------------------------------------------------------------


def _look(case: _Case) -> _Ruling | None:
    """Reads the run with our own credential; None where it is ours and still costs money."""
    try:
        report = case.entry.adapter.status(case.address)
        doubt = _doubt(case, report)
    except Gone as error:
        return _Ruling(Stopped.NOT_OURS, "the provider shows no such run to our credential", error=error, may_lag=True)
    # An adapter's defect is this run's trouble only; it is looked at again, and counted.
    except Exception as error:  # noqa: BLE001
        return _failed(error)
    if doubt is not None:
        return doubt
    ended = report.state is not None and is_terminal(report.state)
    return _Ruling(Stopped.ENDED, f"the run has ended: {report.state}", report) if ended else None


def _doubt(case: _Case, report: Report) -> _Ruling | None:
    """Why the run may not be ours; None where it is."""
    if report.provider_job_id not in (None, case.run):
        return _Ruling(Stopped.RETRY, f"asked about run {case.run}, answered about {report.provider_job_id}")
    ours = (case.attempt["token"], case.attempt["idempotency_key"])
    if report.reference is not None:
        foreign = report.reference not in ours
        return _Ruling(Stopped.NOT_OURS, "the provider names another reference with it") if foreign else None
    if not case.entry.adapter.capabilities.search:
        return None
    found = case.entry.adapter.find(idempotency_key=ours[1], token=ours[0])
    if any(run.provider_job_id == case.run for run in found):
        return None
    return _Ruling(Stopped.NOT_OURS, "the provider does not list it under our token or key", may_lag=True)


def _failed(error: Exception) -> _Ruling:
    if isinstance(error, JobsError):
        return _Ruling(Stopped.RETRY, error.detail, error=error)
    _log.exception("extra_run_broke")
    return _Ruling(Stopped.RETRY, f"the adapter raised {type(error).__name__}", error=error)


# Stop it -----------------------------------------------------------------------------------------------------


def _cancel(runtime: Runtime, case: _Case) -> _Ruling:
    """Cancels the run, if it still is nobody's; a provider takes the same cancel twice without harm."""
    if not case.entry.adapter.capabilities.cancel:
        return _Ruling(Stopped.LEFT, "the provider cannot cancel a run")
    with runtime.database.write() as tx:
        foreign = _owned_by_another(tx, case)
    if foreign is not None:
        return _Ruling(Stopped.NOT_OURS, foreign)
    try:
        report = case.entry.adapter.cancel(case.address)
    except (AlreadyFinished, Gone) as error:
        return _Ruling(Stopped.RETRY, f"too late to cancel it: {error.detail}")
    except Exception as error:  # noqa: BLE001 - as above
        return _failed(error)
    return _Ruling(Stopped.CANCELED, "the provider took its cancel", report)


# Write it down -----------------------------------------------------------------------------------------------


def _record(tx: Transaction, runtime: Runtime, case: _Case, ruling: _Ruling) -> Stopped:
    away, _events = outages.observe(tx, runtime, case.entry, ref=case.extra["id"], answer=ruling.error)
    error = ruling.error if isinstance(ruling.error, JobsError) else None
    if error is not None and error.retry_after is not None:
        budgets.block(tx, case.entry.name, error.retry_after)
    lock_job(tx, case.extra["job_id"])
    lags = ruling.may_lag and tx.now - case.extra["found_at"] < _LAG
    again = lags or ruling.result in (Stopped.RETRY, Stopped.CANCELED)
    if again and (away or not gives_up(tx, case.entry, ruling.error, tries=case.extra["tries"])):
        wait = wait_after(error, case.extra["tries"], rng=runtime.rng)
        counted = {"tries": case.extra["tries"] - away}
        end_extra_run(tx, case.extra, {"next_check_at": tx.now + wait, "reason": ruling.reason, **counted})
        return Stopped.RETRY if lags else ruling.result
    if again and not lags:
        ruling = _Ruling(Stopped.LEFT, f"given up after {case.extra['tries']} tries: {ruling.reason}", ruling.report)
    _settle(tx, case, ruling)
    return ruling.result


def _settle(tx: Transaction, case: _Case, ruling: _Ruling) -> None:
    changes: dict[str, Any] = {"settled": str(ruling.result), "settled_at": tx.now, "reason": ruling.reason}
    if ruling.report is not None:
        state, cost = ruling.report.state, ruling.report.cost
        changes |= {"state": None if state is None else str(state), "cost": cost or case.extra["cost"]}
    if not end_extra_run(tx, case.extra, {**changes, "next_check_at": None}):
        return
    if ruling.report is not None and ruling.report.cost:
        _charge(tx, case, ruling.report.cost)
    add_to_reason(tx, DOUBLE_SUBMIT, letter_ref(case.extra["job_id"], case.run), f"{case.run}: {ruling.reason}")


def _charge(tx: Transaction, case: _Case, cost: float) -> None:
    """The cost of an attempt's own run, which was given up, is kept with the attempt; part of it may be booked."""
    if case.attempt["provider_job_id"] != case.run:
        book_extra(tx, case.entry, tenant=case.tenant, amount=cost - (case.extra["cost"] or 0.0))
        return
    for grown in raise_costs(tx, [Charge(case.extra["job_id"], case.extra["attempt"], cost)]):
        book_extra(tx, case.entry, tenant=case.tenant, amount=grown.cost)
