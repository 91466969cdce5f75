"""What a stream tells: a snapshot, then each event once, and the latest progress in between.

Read from the database alone. What a reader has been told is a :class:`Place`; from any place on, :func:`news` is the
rest of the story without a gap and without a repetition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jobs.core import instants
from jobs.core.cursors import Cursor
from jobs.core.events import SCHEMA_VERSION, STATE_EVENTS
from jobs.core.states import JobState, is_terminal
from jobs.services.documents import Document, Row, event_document, job_document
from jobs.storage.database import Database, Transaction
from jobs.storage.following import list_job_events
from jobs.storage.jobs import get_job

#: The type of the first message of a stream that does not resume; it is no event and has no id.
SNAPSHOT = "snapshot"
#: Told by streams only: progress is a fact of the moment, and not kept as events.
PROGRESS = "job.progress"

_ENDS = frozenset(str(event_type) for state, event_type in STATE_EVENTS.items() if is_terminal(state))


@dataclass(frozen=True, slots=True)
class Place:
    """What a reader has been told.

    Attributes:
        cursor: The last event, and the version of the job.
        progress: The progress told last, as (fraction, message).
    """

    cursor: Cursor
    progress: tuple[Any, Any] | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a stream; ``place`` is where a reader is after it, None where it cannot resume from there."""

    type: str
    data: Document
    place: Place | None

    @property
    def is_last(self) -> bool:
        """Whether the job's story is told with it."""
        return self.type in _ENDS


@dataclass(frozen=True, slots=True)
class Opening:
    """How a stream begins.

    Attributes:
        messages: To be told at once.
        place: Where the reader is after them.
        is_whole: Nothing can follow them.
    """

    messages: tuple[Message, ...]
    place: Place
    is_whole: bool

    @property
    def is_over(self) -> bool:
        """Whether the reader knows the end already: there is nothing to stream."""
        return self.is_whole and not self.messages


def open_stream(database: Database, *, tenant: str, job_id: str, last_id: str | None) -> Opening:
    """What a new reader is told first.

    Args:
        database: Where the truth is.
        tenant: Who asks.
        job_id: The job to follow.
        last_id: The id of the last message the reader has; whatever it sent.

    Raises:
        NotFound: There is no such job, or it is another tenant's.
        Unavailable: The database cannot be asked.
    """
    with database.read() as tx:
        row = get_job(tx, job_id, tenant=tenant)
        cursor = _known_cursor(row, last_id)
        if cursor is None:
            return _fresh(tx, row, was_reset=bool(last_id))
        messages = news(tx, row, Place(cursor))
    is_whole = _has_ended(row) or any(message.is_last for message in messages)
    return Opening(tuple(messages), place_after(messages, row, Place(cursor)), is_whole)


def news(tx: Transaction, row: Row, place: Place) -> list[Message]:
    """What happened to a job after a place; nothing once its end has been told.

    Args:
        tx: The open transaction.
        row: The job, read in it.
        place: What the reader has been told.
    """
    events = list_job_events(tx, row["id"], after=0 if _has_ended(row) else place.cursor.sequence)
    messages: list[Message] = []
    for event in events:
        if event["sequence"] > place.cursor.sequence:
            place = _after_event(event, place)
            messages.append(Message(event["type"], envelope(event), place))
        if event["type"] in _ENDS:
            return messages
    if not _has_ended(row) and _is_further(row, place):
        messages.append(_progress_message(tx, row, place))
    return messages


def place_after(messages: list[Message], row: Row, place: Place) -> Place:
    """Where a reader is after some messages: it has seen this row, whatever of it was worth telling."""
    last = messages[-1].place or place if messages else place
    cursor = Cursor(max(last.cursor.sequence, row["event_count"]), max(last.cursor.version, row["version"]))
    return Place(cursor, last.progress or _progress_of(row["progress"]))


def envelope(event: Row) -> Document:
    """An event as it is told everywhere. Its place in the list of all events is given later, and is left out."""
    document = event_document(event)
    del document["position"]
    return document


def _known_cursor(row: Row, last_id: str | None) -> Cursor | None:
    cursor = Cursor.from_text(last_id, row["id"])
    if cursor is None or cursor.sequence > row["event_count"] or cursor.version > row["version"]:
        return None
    return cursor


def _fresh(tx: Transaction, row: Row, *, was_reset: bool) -> Opening:
    """A snapshot. Of a job that has ended its end as well: only an event has the id that a reader can end with."""
    place = Place(Cursor(row["event_count"], row["version"]), _progress_of(row["progress"]))
    data: Document = {"job": job_document(row)} | ({"reset": True} if was_reset else {})
    messages = [Message(SNAPSHOT, data, None)]
    if _has_ended(row):
        messages += [message for message in news(tx, row, Place(Cursor(0, 0))) if message.is_last]
    return Opening(tuple(messages), place, _has_ended(row))


def _after_event(event: Row, place: Place) -> Place:
    job = (event["data"] or {}).get("job")  # erased with the job's input and output
    if not isinstance(job, dict):
        return Place(Cursor(event["sequence"], place.cursor.version), place.progress)
    version = max(place.cursor.version, job["version"])
    return Place(Cursor(event["sequence"], version), _progress_of(job["progress"]))


def _has_ended(row: Row) -> bool:
    return is_terminal(JobState(row["state"]))


def _is_further(row: Row, place: Place) -> bool:
    progress = _progress_of(row["progress"])
    return row["version"] > place.cursor.version and progress is not None and progress != place.progress


def _progress_message(tx: Transaction, row: Row, place: Place) -> Message:
    after = Place(Cursor(place.cursor.sequence, row["version"]), _progress_of(row["progress"]))
    data = {
        "id": f"evt_{row['id'].removeprefix('job_')}v{row['version']}",
        "type": PROGRESS,
        "schema_version": SCHEMA_VERSION,
        "sequence": None,
        "occurred_at": instants.to_text(tx.now),
        "tenant": row["tenant"],
        "data": {"job": job_document(row, with_input=False)},
    }
    return Message(PROGRESS, data, after)


def _progress_of(document: Any) -> tuple[Any, Any] | None:
    return (document.get("fraction"), document.get("message")) if document else None
