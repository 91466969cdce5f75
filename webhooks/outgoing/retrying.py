"""When to try again, and when to give up: pure rules."""

from __future__ import annotations

from datetime import datetime, timedelta

from jobs.core.backoff import Rng, parse_retry_after

_S, _MIN, _H = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
#: Waits after the first, second … try has failed.
WAITS = (5 * _S, 5 * _MIN, 30 * _MIN, 2 * _H, 5 * _H, 10 * _H, 14 * _H, 20 * _H, 24 * _H)
MAX_TRIES = len(WAITS) + 1
#: Of those, such as never come to their end: each took its worker along.
MAX_STARTS = 3
#: An endpoint that has failed this long, and did nothing else, is disabled.
DISABLE_AFTER = timedelta(days=5)
#: Failures further apart than this do not belong to one outage: the longest wait is shorter.
SAME_OUTAGE = timedelta(days=2)
#: Nobody waits longer, whatever a Retry-After asks for.
MAX_RETRY_AFTER = timedelta(days=1)
_LEAST, _MOST = 0.8, 1.2


def wait_after(tries: int, rng: Rng) -> timedelta:
    """The wait after so many tries have failed (from 1): a fifth less to a fifth more than the table says."""
    return WAITS[min(tries, len(WAITS)) - 1] * rng.uniform(_LEAST, _MOST)


def next_wait(tries: int, retry_after: str | None, *, now: datetime, rng: Rng) -> timedelta:
    """The wait before the next try; never shorter than the receiver asked for.

    Args:
        tries: How many have failed, from 1.
        retry_after: The header as sent, or None.
        now: Aware.
        rng: For the jitter.
    """
    usual = wait_after(tries, rng)
    return max(usual, parse_retry_after(retry_after, now=now, default=usual, maximum=MAX_RETRY_AFTER))


def failing_since(since: datetime | None, last: datetime | None, *, now: datetime) -> datetime:
    """When the present outage of an endpoint began, after one more failure now."""
    if since is None or last is None or now - last > SAME_OUTAGE:
        return now
    return since


def is_given_up(since: datetime, *, now: datetime) -> bool:
    """Whether an endpoint that has failed since then is to be disabled."""
    return now - since >= DISABLE_AFTER
