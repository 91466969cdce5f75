"""Timestamps in signatures: strictly ASCII digits, fresh within a tolerance both ways.

`int()` takes underscores, blanks, signs and digits of other scripts, and raises on 5,000 of them; a one-sided
check takes milliseconds, or any date ahead, as fresh for ever. Hence this file.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Literal

from jobs.core.errors import Expired, FromFuture, Malformed

Unit = Literal["s", "ms"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
#: Microseconds in one unit.
_SCALE: dict[Unit, int] = {"s": 1_000_000, "ms": 1_000}
#: Milliseconds reach 13 digits until the year 2286; more than this is no time anyone signs at.
_MAX_DIGITS = 16


def parse_timestamp(raw: bytes) -> int:
    """Return the number a timestamp stands for, in the sender's unit.

    Raises:
        Malformed: anything but 1 to 16 ASCII digits.
    """
    if not raw.isdigit() or len(raw) > _MAX_DIGITS:  # bytes.isdigit knows ASCII only
        raise Malformed("the timestamp is not a whole number")
    return int(raw)


def check_fresh(stamp: int, *, now: datetime, unit: Unit, tolerance: timedelta) -> datetime:
    """Return the instant of a timestamp that lies within the tolerance, either way.

    Raises:
        Expired: too long ago.
        FromFuture: too far ahead; what a sender that counts in milliseconds looks like to one in seconds.
    """
    # Whole microseconds: a stamp of 16 digits is beyond what datetime and timedelta can hold.
    age_us = (now - _EPOCH) // _MICROSECOND - stamp * _SCALE[unit]
    limit_us = tolerance // _MICROSECOND
    if age_us > limit_us:
        raise Expired
    if age_us < -limit_us:
        raise FromFuture
    return _EPOCH + timedelta(microseconds=stamp * _SCALE[unit])


def format_timestamp(at: datetime, *, unit: Unit) -> str:
    """Return an instant as whole units since 1970, rounded down."""
    return str((at - _EPOCH) // timedelta(microseconds=_SCALE[unit]))
