"""Booking what attempts cost, in the transaction that learned it; :mod:`.accounts.spending` says what for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobs.core.policy import DEFAULT_POLICY, Policy
from jobs.services.documents import Row
from jobs.storage.attempts import Charge, raise_costs
from jobs.storage.database import Transaction
from jobs.storage.spend import Spent, book


def charge_attempts(tx: Transaction, policies: Mapping[str, Policy], charges: Sequence[tuple[Row, Charge]]) -> None:
    """Books what is new of costs that a provider named.

    Args:
        tx: The open transaction, which holds the jobs' locks.
        policies: By provider entry.
        charges: Each with the row of its job.
    """
    if not charges:
        return
    owners = {charge.job_id: job for job, charge in charges}
    added = raise_costs(tx, [charge for _, charge in charges])
    book(tx, [_spent(policies, owners[charge.job_id], charge.cost) for charge in added])


def _spent(policies: Mapping[str, Policy], job: Row, amount: float) -> Spent:
    currency = policies.get(job["provider"], DEFAULT_POLICY).currency
    return Spent(job["provider"], job["tenant"], currency, amount)
