"""Storing a batch of authentic events in one transaction, and saying of each what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from jobs.core.errors import Stale
from jobs.core.text import clean
from jobs.storage.attempts import find_attempt_by_token
from jobs.storage.database import Database, Transaction
from webhooks.incoming.events import KnownEvent, NewEvent, Stored
from webhooks.incoming.letters import write_letter
from webhooks.incoming.receiving.quarantine_rows import Refused, insert_refused
from webhooks.incoming.receiving.statements import count_copies, find_known, insert_events
from webhooks.incoming.schema import InboxStatus


def ingest(database: Database, events: Sequence[NewEvent]) -> list[Stored]:
    """Stores events, each delivery once; returns after the commit.

    Returns:
        What became of each, in the order given.

    Raises:
        Unavailable: The database cannot be reached; nothing was stored.
        Stale: A row vanished between two statements; nothing was stored.
    """
    with database.write() as tx:
        return store_events(tx, events)


def store_events(tx: Transaction, events: Sequence[NewEvent]) -> list[Stored]:
    """As :func:`ingest`, in a transaction of the caller's.

    Raises:
        Stale: A row vanished between two statements; nothing may be kept of this transaction.
    """
    inserted = insert_events(tx, events)
    new = [event for event in events if event.id in inserted]
    _write_letters(tx, new)
    stored = {event.id: _new(event) for event in new}
    repeats = [event for event in events if event.id not in inserted]
    if repeats:
        stored |= _settle_repeats(tx, repeats)
    return [stored[event.id] for event in events]


def record_copies(database: Database, copies: Mapping[str, int]) -> dict[str, int]:
    """Counts repeats that were acknowledged without a look at the database.

    Returns:
        Those whose row was busy, to be counted later.
    """
    with database.write() as tx:
        counted = count_copies(tx, copies)
    return {event_id: count for event_id, count in copies.items() if event_id not in counted}


def keep_refused(database: Database, refused: Sequence[Refused]) -> None:
    """Puts refused requests into the quarantine.

    Raises:
        Unavailable: The database cannot be reached.
    """
    with database.write() as tx:
        insert_refused(tx, refused)


def is_known_token(database: Database, provider: str, token: str) -> bool:
    """Whether a provider was given this callback token.

    Raises:
        Unavailable: The database cannot be reached.
    """
    with database.read() as tx:
        return find_attempt_by_token(tx, provider, clean(token)) is not None


def _new(event: NewEvent) -> Stored:
    return Stored(str(event.status), event.id, KnownEvent(event.id, event.digest, event.fact), is_new=True)


def _settle_repeats(tx: Transaction, repeats: Sequence[NewEvent]) -> dict[str, Stored]:
    known = find_known(tx, repeats)
    same = {event.id: _known(known, event) for event in repeats if _known(known, event).is_repeated_by(event)}
    stored = {event_id: Stored("duplicate", found.id, found, is_new=False) for event_id, found in same.items()}
    copies = Counter(found.id for found in same.values())
    others = [
        (event.id, event.as_conflict(known_id=_known(known, event).id)) for event in repeats if event.id not in same
    ]
    if others:
        conflicts, repeated = _store_conflicts(tx, [conflict for _, conflict in others])
        stored |= conflicts
        copies.update(repeated)
    if copies:
        count_copies(tx, copies)
    return stored


def _store_conflicts(tx: Transaction, events: Sequence[NewEvent]) -> tuple[dict[str, Stored], list[str]]:
    """Keeps contradictions beside what they contradict; returns the answers, and the rows met once more."""
    inserted = insert_events(tx, events)
    rows = find_known(tx, events)
    met_again = [_known(rows, event).id for event in events if event.id not in inserted]
    status = str(InboxStatus.CONFLICT)
    stored = {event.id: Stored(status, _known(rows, event).id, None, is_new=event.id in inserted) for event in events}
    return stored, met_again


def _known(known: Mapping[tuple[str, str], KnownEvent], event: NewEvent) -> KnownEvent:
    try:
        return known[event.key]
    except KeyError:
        raise Stale("an inbox row vanished while its repeat was stored") from None


def _write_letters(tx: Transaction, events: Iterable[NewEvent]) -> None:
    for event in events:
        if event.status is InboxStatus.QUARANTINED:
            write_letter(tx, asdict(event), reason=event.reason or "unusable")
