"""Money as far as Homing knows it: what a provider may cost in a day or a month, and when that begins anew."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

#: What costs are taken to be in, where no budget names it.
DEFAULT_CURRENCY = "USD"


class Per(StrEnum):
    """The time a budget is for, in UTC."""

    DAY = "day"
    MONTH = "month"


@dataclass(frozen=True, slots=True)
class Budget:
    """What may be spent at a provider.

    Attributes:
        amount: In the provider's currency; once as much is spent, nothing new is submitted.
        per: The time it is for.
    """

    amount: float
    per: Per


def day_of(at: datetime) -> str:
    """The UTC day an amount is booked on, as ``2026-01-31``: days sort as text."""
    return at.astimezone(UTC).date().isoformat()


def first_day(per: Per, *, now: datetime) -> str:
    """The day the budget's current time began."""
    day = day_of(now)
    return day if per is Per.DAY else f"{day[:7]}-01"


def next_turn(per: Per, *, now: datetime) -> datetime:
    """When the budget begins anew."""
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if per is Per.DAY:
        return today + timedelta(days=1)
    return (today.replace(day=1) + timedelta(days=32)).replace(day=1)
