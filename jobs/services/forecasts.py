"""What was learned of a provider's jobs, kept in the process for a moment: every poll asks, and it changes slowly."""

from __future__ import annotations

from datetime import datetime, timedelta

from jobs.core.forecast import Outlook, forecast_of
from jobs.storage.database import Transaction
from jobs.storage.learned import find_samples, find_standing

_KEPT = timedelta(seconds=30)
_MOST = 1000  # kinds of job, should somebody invent a model's name for each


class Forecasts:
    """A process's view of what was learned. Threads may share it: at worst two of them read the same rows."""

    def __init__(self) -> None:
        """Reads nothing yet."""
        self._known: dict[tuple[str, str], tuple[datetime, Outlook]] = {}

    def outlook(self, tx: Transaction, provider: str, model: str | None) -> Outlook:
        """What is to be expected of a provider's jobs of a kind; no older than half a minute."""
        key = (provider, model or "")
        known = self._known.get(key)
        if known is not None and tx.now - _KEPT < known[0] <= tx.now:
            return known[1]
        outlook = _read(tx, *key)
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[key] = (tx.now, outlook)
        return outlook


def _read(tx: Transaction, provider: str, model: str) -> Outlook:
    standing = find_standing(tx, provider)
    is_degraded = standing is not None and standing["degraded_at"] is not None
    return Outlook(forecast_of(find_samples(tx, provider, model)), needs_polls=is_degraded)
