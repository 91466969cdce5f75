"""Working off redrives of many letters: at their rate, one letter at a time.

Each letter and the step over it is a transaction of its own, with the same premise as a redrive of one: so two redrives
over the same letters, or a person beside them, act once for each. A worker that dies loses the letter it was at,
nothing more; who comes next goes on from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from jobs.core.errors import Stale, Unavailable
from jobs.services.letters.bulk_redrives import filter_of
from jobs.services.letters.dead_letters import act, ring
from jobs.services.runtime import Runtime
from jobs.storage import redrives
from jobs.storage.database import Transaction
from jobs.storage.jobs import Row
from jobs.storage.letter_decisions import get_letter
from jobs.storage.premise import Premise, always

#: Letters of one pass.
BATCH = 25
LEASE = timedelta(seconds=30)
MAX_STARTS = 3
#: What a redrive that was held up may make good at once.
_BURST = timedelta(seconds=1)
#: Reasons kept apart; the rest is added up.
_MAX_REASONS = 10
_OTHERS = "other reasons"

_log = structlog.get_logger(__name__)


def advance(runtime: Runtime, limit: int = BATCH, *, premise: Premise = always) -> int:
    """Moves the redrive that has waited longest on, as far as its rate allows.

    Args:
        runtime: The process's parts.
        limit: Letters at most.
        premise: Checked when it is taken on.

    Returns:
        How many letters had their turn; 0 also where a redrive has come to its end.

    Raises:
        Stale: The premise failed.
        Unavailable: The database is away; what was committed stands, and the next sweep goes on.
    """
    with runtime.database.read() as tx:
        if not redrives.has_due(tx):
            return 0
    with runtime.database.write() as tx:
        premise(tx)
        row = redrives.claim(tx, until=tx.now + LEASE)
        if row is None or _is_given_up(tx, row):
            return 0
        allowance = _Allowance(row, tx.now)
    try:
        return _work_off(runtime, row, allowance, limit)
    except Stale:
        _log.info("redrive passed on, or was ended", redrive=row["id"])
        return 0


@dataclass(frozen=True, slots=True)
class _Allowance:
    """When the rate allows what: a late sweep makes a little good at once, and no more."""

    row: Row
    now: datetime

    @property
    def since(self) -> datetime:
        due_at: datetime = self.row["next_at"]
        return max(due_at, self.now - _BURST)

    def letters(self, limit: int) -> int:
        return min(limit, 1 + int((self.now - self.since).total_seconds() * self.row["rate_per_s"]))

    def next_at(self, count: int) -> datetime:
        return self.since + timedelta(seconds=count / self.row["rate_per_s"])


def _work_off(runtime: Runtime, row: Row, allowance: _Allowance, limit: int) -> int:
    wanted, count = filter_of(row["filters"]), 0
    for _ in range(allowance.letters(limit)):
        with runtime.database.read() as tx:
            letter_id = redrives.find_next_letter(tx, row, wanted) if row["last_letter"] else None
        if letter_id is None:
            _finish(runtime, row)
            return count
        row = _redrive_next(runtime, row, letter_id)
        count += 1
    with runtime.database.write() as tx:
        released = {"lease_token": None, "lease_until": None, "starts": 0, "next_at": allowance.next_at(count)}
        redrives.update_held(tx, row, released)
    return count


def _redrive_next(runtime: Runtime, row: Row, letter_id: str) -> Row:
    """One letter and the step over it, in one transaction; a letter that breaks is stepped over and counted."""
    try:
        with runtime.database.write() as tx:
            letter = get_letter(tx, letter_id, tenant=row["tenant"], with_fleet=row["with_fleet"], locked=True)
            why_not = act(runtime, tx, letter, by=f"{row['asked_by']}, {row['id']}")
            after = _step(tx, row, letter_id, "redriven" if why_not is None else "noop", why_not)
    except (Stale, Unavailable):
        raise
    except Exception as error:  # noqa: BLE001 - one letter's defect: the letters behind it have their turn
        _log.exception("redrive of a letter broke", letter=letter_id, redrive=row["id"])
        with runtime.database.write() as tx:
            return _step(tx, row, letter_id, "failed", f"it raised {type(error).__name__}")
    if why_not is None:
        ring(runtime, letter)
    return after


def _step(tx: Transaction, row: Row, letter_id: str, outcome: str, reason: str | None) -> Row:
    changes = {"after_letter": letter_id, outcome: row[outcome] + 1, "reasons": _counted(row["reasons"], reason)}
    redrives.update_held(tx, row, changes)
    return {**row, **changes}


def _counted(reasons: Mapping[str, int], reason: str | None) -> dict[str, int]:
    if reason is None:
        return dict(reasons)
    name = reason if reason in reasons or len(reasons) < _MAX_REASONS else _OTHERS
    return {**reasons, name: reasons.get(name, 0) + 1}


def _finish(runtime: Runtime, row: Row) -> None:
    with runtime.database.write() as tx:
        redrives.update_held(tx, row, {"starts": 0})
        redrives.end(tx, row["id"], "done")
    counts = {name: row[name] for name in ("total", "redriven", "noop", "failed")}
    _log.info("redrive of many done", redrive=row["id"], **counts)


def _is_given_up(tx: Transaction, row: Row) -> bool:
    if row["starts"] <= MAX_STARTS:
        return False
    words = f"{MAX_STARTS} starts never came to their end, after letter {row['after_letter'] or 'none'}"
    _log.error("redrive of many given up", redrive=row["id"], reason=words)
    return redrives.end(tx, row["id"], "failed", error=words)
