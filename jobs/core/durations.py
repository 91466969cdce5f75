"""Durations, sizes and rates as people write them: `1.5h`, `5MiB`, `10/s`.

A bare number is refused where its unit could be guessed wrong; each message says what to write instead.
"""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal

_UNITS_US = {
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
_SIZES = {"B": 1} | {
    f"{letter}{infix}B": factor**power
    for power, letter in enumerate("KMGT", start=1)
    for infix, factor in (("", 1000), ("i", 1024))
}
_SIZES_BY_LOWER = {name.lower(): size for name, size in _SIZES.items()}
#: Longer than any sensible text; keeps a number from being converted for seconds.
_MAX_CHARS = 40

_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_PART = re.compile(rf"({_NUMBER}) ?(ms|s|m|h|d)", re.ASCII)
_DURATION = re.compile(rf"(?:{_NUMBER} ?(?:ms|s|m|h|d) ?)+", re.ASCII)
_SIZE = re.compile(rf"({_NUMBER}) ?([A-Za-z]*)", re.ASCII)
_RATE = re.compile(rf"({_NUMBER}) ?/ ?(s|m|h|d)", re.ASCII)


def parse_duration(value: object) -> timedelta:
    """Return a duration.

    Args:
        value: `250ms`, `90s`, `1.5h`, `2d`, several in a row (`1h 30m`), or a timedelta.

    Raises:
        ValueError: what to write instead.
    """
    if isinstance(value, timedelta):
        return _not_negative(value)
    text = _short_text(value)
    if text is None or not _DURATION.fullmatch(text):
        raise ValueError(f"{_quoted(value)} is not a duration; write a number with ms, s, m, h or d, like 90s")
    total_us = sum(Decimal(number) * _UNITS_US[unit] for number, unit in _PART.findall(text))
    try:
        return timedelta(microseconds=int(total_us))
    except OverflowError:
        raise ValueError(f"{_quoted(value)} is too long") from None


def parse_size(value: object) -> int:
    """Return a size in bytes.

    Args:
        value: `500MB` (10⁶), `5MiB` (2²⁰), `1.5 GB`, or a whole number of bytes.

    Raises:
        ValueError: what to write instead.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    match = _SIZE.fullmatch(_short_text(value) or "")
    size = _SIZES_BY_LOWER.get((match[2] or "B").lower()) if match else None
    if match is None or size is None:
        raise ValueError(f"{_quoted(value)} is not a size; write a number with B, {', '.join(list(_SIZES)[1:])}")
    return int(Decimal(match[1]) * size)


def parse_rate(value: object) -> float:
    """Return a rate per second.

    Args:
        value: `10/s`, `600/m`, `1000/h`, `50/d`.

    Raises:
        ValueError: what to write instead.
    """
    match = _RATE.fullmatch(_short_text(value) or "")
    if match is None or not Decimal(match[1]):
        raise ValueError(f"{_quoted(value)} is not a rate; write a number above 0 per s, m, h or d, like 10/s")
    number, unit_us = Decimal(match[1]), _UNITS_US[match[2]]
    if number * _UNITS_US["d"] < unit_us:  # nothing divided: 1/d is no decimal
        raise ValueError(f"{_quoted(value)} is less than 1/d; to stop a provider, pause it")
    return float(number * _UNITS_US["s"] / unit_us)


def format_duration(value: timedelta) -> str:
    """Return a duration as `parse_duration` reads it: `1h 30m`, `250ms`, `0s`; rounded to milliseconds."""
    rest = round(abs(value) / timedelta(milliseconds=1))
    parts = []
    for unit in ("d", "h", "m", "s", "ms"):
        count, rest = divmod(rest, _UNITS_US[unit] // 1000)
        if count:
            parts.append(f"{count}{unit}")
    sign = "-" if parts and value < timedelta(0) else ""
    return sign + (" ".join(parts) or "0s")


def _not_negative(value: timedelta) -> timedelta:
    if value < timedelta(0):
        raise ValueError("a duration cannot be negative")
    return value


def _short_text(value: object) -> str | None:
    text = value.strip() if isinstance(value, str) else ""
    return text if len(text) <= _MAX_CHARS else None


def _quoted(value: object) -> str:
    return repr(value)[:_MAX_CHARS]
