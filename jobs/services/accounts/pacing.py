"""How fast work that has piled up is taken on: no second gets more than a twentieth of it.

What could not be done for a while (the provider was away or asked us to wait, somebody had paused it, we were down
ourselves) is all due at the same moment afterwards. Sent at once it would be the next outage. So the account's row gets
a pace, by what was due when it began, and each claim takes from the second it is made in.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import structlog

from jobs.storage.accounts import count_due, find_account, lock_account, update_account
from jobs.storage.database import Transaction
from jobs.storage.jobs import Row

SHARE = 1 / 20
#: A pile so small that it needs no pace is worked off at this one.
LEAST_PER_S = 20
#: Work that nobody has begun for so long has piled up.
LATE = timedelta(seconds=10)
#: A pile is gone by then: it takes 20 s and what the ticks' rhythm costs. What is late even so came meanwhile: the pace
#: is doubled, else work that comes as fast as it goes would be late for ever.
SPAN = timedelta(seconds=30)
#: Counting ends here; at a pace of a thousand a second, others bound the work. So does doubling, which goes on for as
#: long as anything is late: a backlog behind an account's concurrency may be that for days.
MOST_COUNTED = MOST_PER_S = 20_000

_log = structlog.get_logger(__name__)


def begin(tx: Transaction, name: str) -> Row:
    """Sets the account's pace by what is due now, unless it has one; locks the account and returns it."""
    account = lock_account(tx, name)
    if is_on(account, tx.now):
        return account
    piled_up = count_due(tx, name, most=MOST_COUNTED)
    per_s = min(max(int(piled_up * SHARE), LEAST_PER_S, 2 * _pace_before(account, tx.now)), MOST_PER_S)
    pace = {"pace_per_s": per_s, "pace_until": tx.now + SPAN}
    update_account(tx, name, **pace)
    _log.info("paced", provider=name, due=piled_up, per_s=per_s)
    return {**account, **pace}


def _pace_before(account: Row, now: datetime) -> int:
    """The pace that has just ended; 0 where none has."""
    return account["pace_per_s"] if account["pace_until"] and now - account["pace_until"] < SPAN else 0


def is_on(account: Row, now: datetime) -> bool:
    """Whether the account has a pace."""
    return account["pace_until"] is not None and account["pace_until"] > now


def find_room(account: Row, *, now: datetime, limit: int) -> int:
    """How much may be taken on in this second, at most ``limit``."""
    if not is_on(account, now):
        return limit
    left: int = account["pace_per_s"] - _taken(account, now)
    return max(min(limit, left), 0)  # a claim that saw no pace yet may have taken more than it allows


def take(tx: Transaction, name: str, count: int) -> None:
    """Counts what was taken on in this second; where there is no pace, nothing."""
    if count <= 0 or not is_on(find_account(tx, name), tx.now):
        return
    account = lock_account(tx, name)
    update_account(tx, name, pace_second=_second(tx.now), pace_taken=_taken(account, tx.now) + count)


def _taken(account: Row, now: datetime) -> int:
    return (account["pace_taken"] or 0) if account["pace_second"] == _second(now) else 0


def _second(now: datetime) -> datetime:
    return now.replace(microsecond=0)
