"""Reads the provider's ledger: when runs began and ended, how they ended, which news of it was lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobs.core import instants
from jobs.core.states import TERMINAL

#: Faults after which no webhook of a run's end can be believed: only a poll brings the job home.
LOST = frozenset({"dropped", "badly_signed", "stale", "delayed_stale"})
#: Totals of the ledger that count traffic; every other one counts a fault.
TRAFFIC = frozenset({"submits", "reads", "searches", "streams", "cancels", "events", "sent", "refused"})


@dataclass(frozen=True, slots=True)
class Ending:
    """How the provider's books say a run ended.

    Attributes:
        status: the provider's word, which is ours for an end.
        told_at: when the first webhook about it was sent, or lost; late ones are told late.
        fault: the trouble of that webhook.
    """

    status: str
    told_at: datetime
    fault: str | None


def endings(ledger: Mapping[str, Any]) -> dict[str, Ending]:
    """Return the end of each run whose end was announced, lost announcements included."""
    found: dict[str, Ending] = {}
    for entry in ledger["webhooks"]:
        if entry["status"] in TERMINAL and entry["job"] not in found:
            at = instants.from_text(entry["at"])
            found[entry["job"]] = Ending(entry["status"], at, entry["fault"])
    return found


def beginnings(ledger: Mapping[str, Any]) -> dict[str, datetime]:
    """Return when each run was submitted."""
    found: dict[str, datetime] = {}
    for entry in ledger["submits"]:
        if entry["id"] is not None:
            found.setdefault(entry["id"], instants.from_text(entry["at"]))
    return found


def runs_by_fault(ledger: Mapping[str, Any]) -> Counter[str]:
    """Return how many runs suffered each trouble of webhooks."""
    pairs = {(entry["fault"], entry["job"]) for entry in ledger["webhooks"] if entry["fault"] is not None}
    return Counter(fault for fault, _run in pairs)


def billed_runs(ledger: Mapping[str, Any]) -> Counter[str]:
    """Return the runs of each reference: a second one under a reference is a double submit."""
    return Counter(reference for reference, _run in set(_accepted(ledger)))


def _accepted(ledger: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for entry in ledger["submits"]:
        if entry["id"] is not None:
            yield str(entry["reference"]), entry["id"]
