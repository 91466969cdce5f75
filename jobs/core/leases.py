"""Leases and epochs: how a late worker is kept from writing.

A lease is a claim for a time: a token nobody else has, and an end. A worker that stalls past the end may wake
up and go on; by then another has claimed the row under another token. So every write repeats its premise, in
SQL, and these functions are that premise in words. An epoch is a number that only grows, counted in the
database: whoever holds an older one has been succeeded, whatever Redis says.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Lease:
    """A timed claim on a row.

    Attributes:
        token: what the claimant writes with; never given twice.
        until: the instant from which anyone may claim the row; by the database's clock.
    """

    token: int | str
    until: datetime


def is_expired(lease: Lease, *, now: datetime) -> bool:
    """Return whether the lease has ended; at its last instant it has."""
    return lease.until <= now


def may_claim(lease: Lease | None, *, now: datetime) -> bool:
    """Return whether a row with this lease, or with none, is free to claim."""
    return lease is None or is_expired(lease, now=now)


def is_current(row: Lease | None, *, held: Lease, now: datetime) -> bool:
    """Return whether a write under the held lease may land on a row.

    Args:
        row: the row's lease as it is now. Its end counts, not the held one's: it may have been renewed.
        held: what the writer claimed.
        now: by the same clock as `until`.
    """
    return row is not None and row.token == held.token and not is_expired(row, now=now)


def is_newer_epoch(epoch: int, *, than: int | None) -> bool:
    """Return whether an epoch begins after another; any epoch is newer than none."""
    return than is None or epoch > than


def is_current_epoch(held: int, *, newest: int | None) -> bool:
    """Return whether a write under the held epoch may land where `newest` is the newest one counted."""
    return newest is None or not is_newer_epoch(newest, than=held)
