"""How the provider writes a moment."""

from __future__ import annotations

from datetime import UTC, datetime


def write_instant(at: datetime) -> str:
    """RFC 3339, in UTC."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")
