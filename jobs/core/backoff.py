"""How long to wait: before the next poll, before the next try, and when somebody else says so.

Poll number n (from 0) waits d = min(base · 2ⁿ, cap), jittered to uniform(d/2, d): the jitter is inside the
cap, so jobs that have all reached the cap still spread out, and a wait is never 0.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Protocol

_MICROSECOND = timedelta(microseconds=1)
_SECOND = timedelta(seconds=1)
#: 2⁷⁰ µs is longer than any timedelta, so doubling more often changes nothing and costs a longer number.
_MAX_DOUBLINGS = 70
#: Longest Retry-After read as a date; the longest legal one has 33 characters.
_MAX_DATE_CHARS = 64
#: Seconds with more digits than this exceed any maximum and are not worth a conversion.
_MAX_DIGITS = 12

_SECONDS = re.compile(r"([0-9]+)(\.[0-9]+)?")


class Rng(Protocol):
    """The one thing jitter needs of a random generator; `random.Random` has it."""

    def uniform(self, a: float, b: float, /) -> float:
        """Return a number between a and b."""
        ...


def undithered(n: int, *, base: timedelta, cap: timedelta) -> timedelta:
    """Return min(base · 2ⁿ, cap), for any n from 0.

    Raises:
        ValueError: n is negative, or base or cap is not longer than 0.
    """
    if n < 0 or base < _MICROSECOND or cap < _MICROSECOND:
        raise ValueError("backoff needs n from 0, and base and cap longer than 0")
    doubled = (base // _MICROSECOND) << min(n, _MAX_DOUBLINGS)
    return min(doubled, cap // _MICROSECOND) * _MICROSECOND


def poll_wait(n: int, *, base: timedelta, cap: timedelta, rng: Rng) -> timedelta:
    """Return the jittered wait before poll number n (from 0): uniform(d/2, d), never 0.

    Raises:
        ValueError: as `undithered`.
    """
    longest = undithered(n, base=base, cap=cap) // _MICROSECOND
    shortest = max(1, (longest + 1) // 2)
    drawn = round(rng.uniform(longest / 2, longest))
    return min(max(drawn, shortest), longest) * _MICROSECOND  # floats this large round past their bounds


def retry_wait(tries: int, *, base: timedelta, cap: timedelta, rng: Rng) -> timedelta:
    """Return the jittered wait after so many tries have failed (from 1): the first waits about base.

    Raises:
        ValueError: as `undithered`.
    """
    return poll_wait(max(tries - 1, 0), base=base, cap=cap, rng=rng)


def parse_retry_after(value: str | None, *, now: datetime, default: timedelta, maximum: timedelta) -> timedelta:
    """Return how long a Retry-After header asks to wait, in whole seconds, rounded up.

    Args:
        value: the header, as sent: seconds, or an HTTP date, or anything at all.
        now: aware.
        default: taken where nothing usable is asked for: absent, past, zero, not a time.
        maximum: never wait longer, whatever is asked for.

    Source: RFC 9110 §10.2.3; fractions are not in it and are sent all the same.
    """
    asked = _asked_seconds((value or "").strip(), now=now)
    if asked is None or asked <= 0:
        return min(default, maximum)
    return maximum if asked >= maximum / _SECOND else timedelta(seconds=asked)


def _asked_seconds(text: str, *, now: datetime) -> int | None:
    if match := _SECONDS.fullmatch(text):
        whole, fraction = match.groups()
        digits = whole.lstrip("0")[: _MAX_DIGITS + 1] or "0"
        return int(digits) + bool(fraction and fraction.strip(".0"))
    at = _http_date(text)
    return None if at is None else -((now - at) // _SECOND)  # rounds up: never sooner than asked


def _http_date(text: str) -> datetime | None:
    if not text or len(text) > _MAX_DATE_CHARS:
        return None
    try:
        at = parsedate_to_datetime(text)
        # Without a zone, or with -0000, it comes back naive; HTTP dates are UTC.
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, TypeError, OverflowError, IndexError):  # what the parser raises on junk, by version
        return None
