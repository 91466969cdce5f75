"""When to read a job's status next: by backoff, or where jobs like it tend to end once that is known.

What was learned is bounded by what was configured. No wait is shorter than ``base``; none is longer than
``overdue_cap``, so that a provider that has become faster is noticed. Beyond everything that was learned the waits
grow with the job's age, by an eighth of it.
"""

from __future__ import annotations

from datetime import timedelta

from jobs.core.backoff import Rng, poll_wait
from jobs.core.forecast import Outlook, schedule_of
from jobs.core.policy import Policy

# While webhooks get lost, backoff without a forecast waits at most half as long.
_CLOSER = 2
_TAIL_SHARE = 1 / 8
# Jobs that began together must not be read together for ever; on average the jitter changes nothing.
_JITTER = (0.8, 1.2)
_MICROSECOND = timedelta(microseconds=1)


def next_poll_wait(
    outlook: Outlook, policy: Policy, *, number: int, age: timedelta, rng: Rng, is_late: bool = False
) -> timedelta:
    """How long to wait before the next status read. Pure but for the jitter.

    Args:
        outlook: What was learned of such jobs.
        policy: The provider's rules.
        number: How many reads there were.
        age: Since the provider accepted the job.
        rng: For the jitter.
        is_late: The expected duration, as somebody stated it, or the deadline has passed: slower, whatever was learned.
    """
    schedule = None if is_late else schedule_of(outlook, base=policy.poll_base, cap=policy.poll_cap)
    longest = max(policy.overdue_cap, policy.poll_cap)
    if schedule is None:
        return _backoff(outlook, policy, number=number, longest=longest if is_late else policy.poll_cap, rng=rng)
    jitter, age_s = rng.uniform(*_JITTER), max(age.total_seconds(), 0.0)
    at_s = schedule.next_age_s(age_s, by=jitter)
    if at_s is None:  # a last look where the last of them ended, then further and further apart
        at_s = max(schedule.ages_s[-1], age_s + age_s * _TAIL_SHARE * jitter)
    return min(max(timedelta(seconds=at_s - age_s), policy.poll_base), longest)


def _backoff(outlook: Outlook, policy: Policy, *, number: int, longest: timedelta, rng: Rng) -> timedelta:
    cap = max(longest / _CLOSER, policy.poll_base, _MICROSECOND) if outlook.needs_polls else longest
    return poll_wait(number, base=policy.poll_base, cap=cap, rng=rng)
