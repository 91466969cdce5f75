"""What jobs cost: booked as it becomes known, and compared with a provider's budget before anything new is sent.

Every cost is kept with the attempt (or the extra run) that caused it, the most that the provider has said, and what is
new of it is booked on the day it was learned. Costs that are not known yet are not guessed: jobs under way when a
budget is spent still add to it.

A webhook without a cost causes no status read just for that, except where a budget is set: it would count nothing.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from jobs.core.spending import Per, day_of, first_day, next_turn
from jobs.services.documents import Document
from jobs.services.runtime import ProviderEntry
from jobs.storage.database import Transaction
from jobs.storage.spend import Spent, book, sum_spent

# A budget may have been raised meanwhile: a job that waits for one looks again so often.
_LOOK_AGAIN = timedelta(minutes=10)


class Overspent(NamedTuple):
    """A budget that has nothing left.

    Attributes:
        words: For the person who decides.
        look_at: When to look again.
    """

    words: str
    look_at: datetime


def book_extra(tx: Transaction, entry: ProviderEntry, *, tenant: str, amount: float) -> None:
    """Books what is new of an extra run's cost."""
    if amount > 0:
        book(tx, [Spent(entry.name, tenant, entry.policy.currency, amount)])


def find_overspent(tx: Transaction, entry: ProviderEntry) -> Overspent | None:
    """The budget of an account, where it forbids a new submit now."""
    budget, currency = entry.policy.budget, entry.policy.currency
    if budget is None:
        return None
    spent = sum_spent(tx, entry.name, currency=currency, since=first_day(budget.per, now=tx.now))
    if spent < budget.amount:
        return None
    turn = next_turn(budget.per, now=tx.now)
    words = (
        f"{spent:.2f} of {budget.amount:.2f} {currency} are spent this {budget.per}; sent when the next one begins "
        f"({turn:%Y-%m-%d} UTC) or the budget is raised, or at once by resolve with resubmit"
    )
    return Overspent(words, min(turn, tx.now + _LOOK_AGAIN))


def spend_document(tx: Transaction, entry: ProviderEntry, *, tenant: str) -> Document:
    """What a tenant spent at a provider today and this month."""
    policy, month = entry.policy, first_day(Per.MONTH, now=tx.now)

    def spent_since(day: str) -> float:
        return round(sum_spent(tx, entry.name, currency=policy.currency, since=day, tenant=tenant), 6)

    return {
        "currency": policy.currency,
        "today": spent_since(day_of(tx.now)),
        "month": spent_since(month),
        "budget": None if policy.budget is None else {"amount": policy.budget.amount, "per": str(policy.budget.per)},
        "exhausted": find_overspent(tx, entry) is not None,
    }
