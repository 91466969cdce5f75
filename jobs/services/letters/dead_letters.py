"""Dead letters: what exhausted its tries and waits for a person, who looks, redrives or discards.

A decision is taken once, however many people press the button: the letter's row is locked first, and the mark is
written with the work it asks for. What fails again becomes a new letter; the old one keeps its history.
"""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from jobs.broker import RELAY, SUBMIT
from jobs.services.documents import Document, dead_letter_document
from jobs.services.keys import Principal, Role
from jobs.services.letters.redrivers import DISCARDERS, REDRIVERS
from jobs.services.paging import page, text_place
from jobs.services.runtime import Runtime
from jobs.storage.database import Database, Transaction
from jobs.storage.jobs import Row
from jobs.storage.letter_decisions import get_letter, mark_discarded, mark_redriven
from jobs.storage.letter_filter import LetterFilter
from jobs.storage.listing import list_dead_letters
from jobs.telemetry import span

_log = structlog.get_logger(__name__)

__all__ = [
    "Decided",
    "LetterFilter",
    "act",
    "discard",
    "read_letter",
    "read_letters",
    "redrive",
    "ring",
    "sees_fleet",
]


@dataclass(frozen=True, slots=True)
class Decided:
    """What came of a decision.

    Attributes:
        letter: The letter afterwards.
        why_not: Why nothing was done; None where it was.
    """

    letter: Document
    why_not: str | None = None


def read_letters(
    database: Database, principal: Principal, *, wanted: LetterFilter, cursor: str | None, limit: int
) -> Document:
    """A page of dead letters, newest first. Letters that belong to no tenant are an admin's to see.

    Raises:
        Unprocessable: The cursor is not one of ours.
    """
    before = text_place(cursor)
    with database.read() as tx:
        rows = list_dead_letters(
            tx,
            tenant=principal.tenant,
            with_fleet=sees_fleet(principal),
            wanted=wanted,
            before=before,
            limit=limit + 1,
        )
    return page(rows, limit=limit, place="id", show=dead_letter_document)


def read_letter(database: Database, principal: Principal, letter_id: str) -> Document:
    """One dead letter.

    Raises:
        NotFound: There is none, or it is another tenant's.
    """
    with database.read() as tx:
        return dead_letter_document(_letter(tx, principal, letter_id))


def redrive(runtime: Runtime, principal: Principal, letter_id: str) -> Decided:
    """Makes the failed thing due again, once.

    Raises:
        NotFound: There is no such letter, or it is another tenant's.
    """
    with span("redrive", clock=runtime.clock), runtime.database.write() as tx:
        letter = _letter(tx, principal, letter_id, locked=True)
        why_not = act(runtime, tx, letter, by=principal.key_id)
        after = dead_letter_document(_letter(tx, principal, letter_id))
    _log.info("redrive", letter=letter_id, kind=letter["kind"], by=principal.key_id, why_not=why_not)
    if why_not is None:
        ring(runtime, letter)
    return Decided(after, why_not)


def act(runtime: Runtime, tx: Transaction, letter: Row, *, by: str) -> str | None:
    """Makes the thing of a locked letter due again, once; returns why there was nothing to do, or None."""
    why_not = _closed(letter) or _redrive(runtime, tx, letter)
    if why_not is None:
        mark_redriven(tx, letter["id"], by=by)
    return why_not


def discard(runtime: Runtime, principal: Principal, letter_id: str) -> Decided:
    """Decides that nothing will be done; the letter stays as history.

    Raises:
        NotFound: There is no such letter, or it is another tenant's.
    """
    with runtime.database.write() as tx:
        letter = _letter(tx, principal, letter_id, locked=True)
        why_not = _closed(letter)
        if why_not is None:
            _undo(tx, letter)
            mark_discarded(tx, letter_id, by=principal.key_id)
        return Decided(dead_letter_document(_letter(tx, principal, letter_id)), why_not)


def _redrive(runtime: Runtime, tx: Transaction, letter: Row) -> str | None:
    redriver = {**REDRIVERS, **runtime.redrivers}.get(letter["kind"])
    if redriver is None:
        return f"this process knows no way to redrive a dead letter of kind {letter['kind']!r}"
    return redriver(tx, letter)


def _undo(tx: Transaction, letter: Row) -> None:
    discarder = DISCARDERS.get(letter["kind"])
    if discarder is not None:
        discarder(tx, letter)


def ring(runtime: Runtime, letter: Row) -> None:
    """Only speed: each of these is a due row that a sweep finds within seconds."""
    if letter["kind"] == "submit":
        runtime.broker.publish(SUBMIT, letter["job_id"])
    elif letter["kind"] == "event":
        runtime.broker.publish(RELAY)


def _closed(letter: Row) -> str | None:
    if letter["redriven_at"] is not None:
        return f"it was redriven before, by {letter['redriven_by']}"
    if letter["discarded_at"] is not None:
        return f"it was discarded before, by {letter['discarded_by']}"
    return None


def _letter(tx: Transaction, principal: Principal, letter_id: str, *, locked: bool = False) -> Row:
    return get_letter(tx, letter_id, tenant=principal.tenant, with_fleet=sees_fleet(principal), locked=locked)


def sees_fleet(principal: Principal) -> bool:
    """Whether letters that belong to no tenant are this reader's too."""
    return principal.role.includes(Role.ADMIN)
