"""Instants as text: RFC 3339, always UTC, always six decimals, so that they also sort as text."""

from __future__ import annotations

from datetime import UTC, datetime


def to_text(at: datetime) -> str:
    """Return an aware instant as `2026-01-01T00:00:00.000000Z`.

    Raises:
        ValueError: the instant is naive; which zone it meant can only be guessed.

    Source: RFC 3339 §5.6.
    """
    if at.tzinfo is None:
        raise ValueError("an instant without a zone has no place in time")
    if at.tzinfo is not UTC:
        at = at.astimezone(UTC)
    return at.isoformat("T", "microseconds")[: -len("+00:00")] + "Z"


def to_text_or_none(at: datetime | None) -> str | None:
    """Return an instant as `to_text` writes it; none where there is none.

    Raises:
        ValueError: as `to_text`.
    """
    return None if at is None else to_text(at)


def from_text(text: str) -> datetime:
    """Return the instant of an RFC 3339 text with a zone.

    Raises:
        ValueError: it is no such text, or has no zone.
    """
    try:
        at = datetime.fromisoformat(text)
        return _in_utc(at)
    except (ValueError, OverflowError):
        raise ValueError(f"{text[:40]!r} is not an RFC 3339 time, such as 2026-01-01T00:00:00Z") from None


def _in_utc(at: datetime) -> datetime:
    if at.tzinfo is None:
        raise ValueError("no zone")
    return at.astimezone(UTC)
