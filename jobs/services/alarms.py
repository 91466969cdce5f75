"""When the clock will have something to say about a job that starts now: its own words, the provider's, or learned."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from jobs.core.policy import REVIEW_AFTER_EXPECTED, Policy, alarms_of
from jobs.services.forecasts import Forecasts
from jobs.storage.database import Transaction
from jobs.storage.jobs import Row

# A person is not called for a job of seconds because its webhook got lost.
_SOONEST_REVIEW = timedelta(minutes=5)


def alarm_columns(
    tx: Transaction,
    forecasts: Forecasts,
    policy: Policy,
    *,
    job: Row,
    start: datetime,
) -> dict[str, Any]:
    """The columns that say when a job's alarms ring.

    Args:
        tx: The open transaction.
        forecasts: What was learned, for a job of which nobody has said how long it takes.
        policy: The provider's rules.
        job: ``provider``, ``model``, ``expected_s`` and ``deadline_s``.
        start: When its time begins.
    """
    expected_s = job["expected_s"]
    alarms = alarms_of(
        policy if expected_s or policy.expected else _learned(tx, forecasts, policy, job),
        start=start,
        expected=timedelta(seconds=expected_s) if expected_s else None,
        deadline=timedelta(seconds=job["deadline_s"]),
    )
    return {
        "expected_at": alarms.expected_at,
        "review_at": alarms.review_at,
        "deadline_at": alarms.deadline_at,
        "next_alarm_at": alarms.next_after(start),
    }


def _learned(tx: Transaction, forecasts: Forecasts, policy: Policy, job: Row) -> Policy:
    forecast = forecasts.outlook(tx, job["provider"], job["model"]).forecast
    if forecast is None:
        return policy
    review_after = policy.review_after or max(forecast.usual * REVIEW_AFTER_EXPECTED, _SOONEST_REVIEW)
    return replace(policy, expected=forecast.usual, review_after=review_after)
