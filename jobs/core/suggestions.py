"""What a person probably meant to write."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most like the one written, in any case, or none where nothing is like it."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    close = get_close_matches(name.casefold(), by_folded, n=1)
    return by_folded[close[0]] if close else None
