"""How one provider's jobs are treated over time, and the pure arithmetic of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from jobs.core.spending import DEFAULT_CURRENCY, Budget

DEFAULT_DEADLINE = timedelta(hours=1)
REVIEW_AFTER_EXPECTED = 3  # review_after defaults to three times the expected duration


class OnDeadline(StrEnum):
    """What the deadline does to an open job."""

    REVIEW = "review"  # ask a person; keep polling slowly
    FAIL = "fail"  # cancel at the provider, then failed/deadline
    CANCEL = "cancel"  # cancel at the provider; canceled once confirmed


class Finish(StrEnum):
    """What makes a job succeed."""

    ON_OUTCOME = "on_outcome"  # the provider's word; files follow with events of their own
    ON_ARTIFACTS = "on_artifacts"  # its files, safe in our store


@dataclass(frozen=True, slots=True)
class Policy:
    """Time and money rules of a provider entry.

    Attributes:
        expected: Usual duration; None where unknown (then nothing is ever overdue before its deadline).
        review_after: Age at which an open job asks for a person; None = three times ``expected``.
        deadline: Age at which ``on_deadline`` happens.
        poll_base, poll_cap: Poll n waits ``min(base * 2**n, cap)``, jittered.
        overdue_cap: The wait between polls of a job past its expected duration.
        rate_per_s: Requests per second to this account at most; None = no limit.
        concurrency: Requests in flight to this account at most; None = no limit.
        budget: What may be spent; None = anything.
        currency: What the provider's costs are in.
        finish: What makes a job succeed; None = as its adapter does by default.
    """

    expected: timedelta | None = None
    review_after: timedelta | None = None
    deadline: timedelta = DEFAULT_DEADLINE
    on_deadline: OnDeadline = OnDeadline.REVIEW
    poll_base: timedelta = timedelta(seconds=1)
    poll_cap: timedelta = timedelta(seconds=60)
    overdue_cap: timedelta = timedelta(minutes=10)
    rate_per_s: float | None = None
    concurrency: int | None = None
    budget: Budget | None = None
    currency: str = DEFAULT_CURRENCY
    finish: Finish | None = None


#: Of a provider this process does not know.
DEFAULT_POLICY = Policy()


@dataclass(frozen=True, slots=True)
class Alarms:
    """When the clock next has something to say about a job."""

    expected_at: datetime | None
    review_at: datetime | None
    deadline_at: datetime

    def next_after(self, now: datetime) -> datetime | None:
        """The earliest alarm still ahead of ``now``."""
        ahead = [at for at in (self.expected_at, self.review_at, self.deadline_at) if at is not None and at > now]
        return min(ahead, default=None)


def alarms_of(policy: Policy, *, start: datetime, expected: timedelta | None, deadline: timedelta) -> Alarms:
    """The alarms of a job that starts now.

    Args:
        policy: The provider's rules.
        start: When the job (or its new attempt) begins.
        expected: The job's own expected duration, which wins over the policy's.
        deadline: The job's deadline as a span.
    """
    usual = expected or policy.expected
    review_after = policy.review_after or (usual * REVIEW_AFTER_EXPECTED if usual else None)
    return Alarms(
        expected_at=start + usual if usual else None,
        review_at=start + review_after if review_after else None,
        deadline_at=start + deadline,
    )
