"""What a stream tells: a snapshot, then each event once, the output, and the latest progress in between.

Read from the database alone. What a reader has been told is a :class:`Place`; from any place on, :func:`news` is the
rest of the story without a gap and without a repetition. A job's end is told last, after all of its output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from jobs.core.cursors import Cursor
from jobs.core.events import StreamedType
from jobs.core.states import JobState, is_terminal
from jobs.services.documents import Document, Row, event_document, job_document
from jobs.services.streams.messages import ENDS, Message, Place, passing_event
from jobs.services.streams.output import output_length, output_news
from jobs.storage.database import Database, Transaction
from jobs.storage.following import list_job_events
from jobs.storage.jobs import get_job

#: The type of the first message of a stream that does not resume; it is no event and has no id.
SNAPSHOT = "snapshot"


@dataclass(frozen=True, slots=True)
class News:
    """What there is to tell.

    Attributes:
        messages: In their order.
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


def open_stream(database: Database, *, tenant: str, job_id: str, last_id: str | None) -> News:
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
        cursor = Cursor.from_text(last_id, job_id)
        if cursor is None or not _is_known(tx, row, cursor):
            return _fresh(tx, row, was_reset=bool(last_id))
        return news(tx, row, Place(cursor))


def news(tx: Transaction, row: Row, place: Place, *, with_output: bool = True) -> News:
    """What happened to a job after a place; nothing once its end has been told.

    Args:
        tx: The open transaction.
        row: The job, read in it.
        place: What the reader has been told.
        with_output: Whether it has room for more text now; without it the end waits as well.
    """
    events, end = _up_to_end(list_job_events(tx, row["id"], after=0 if _has_ended(row) else place.cursor.sequence))
    if end is not None and end["sequence"] <= place.cursor.sequence:
        return News((), _seen(row, place), is_whole=True)
    messages: list[Message] = []
    for event in events:
        if event["sequence"] > place.cursor.sequence:
            place = _after_event(event, place)
            messages.append(Message(event["type"], envelope(event), place))
    if end is None and not _has_ended(row) and _is_further(row, place):
        place = Place(replace(place.cursor, version=row["version"]), _progress_of(row["progress"]))
        messages.append(_progress_message(tx, row, place))
    output = output_news(tx, row, place, told_now=with_output)
    return _ended(row, [*messages, *output.messages], output.place, end=end, is_told=output.is_whole)


def _ended(row: Row, messages: list[Message], place: Place, *, end: Row | None, is_told: bool) -> News:
    """The news with the job's end, where it has one and all else is told."""
    if end is not None and is_told:
        place = _after_event(end, place)
        messages.append(Message(end["type"], envelope(end), place))
        return News(tuple(messages), _seen(row, place), is_whole=True)
    if end is not None:
        return News(tuple(messages), place, is_whole=False)
    return News(tuple(messages), _seen(row, place), is_whole=_has_ended(row) and is_told)


def envelope(event: Row) -> Document:
    """An event as it is told everywhere. Its place in the list of all events is given later, and is left out."""
    document = event_document(event)
    del document["position"]
    return document


def _is_known(tx: Transaction, row: Row, cursor: Cursor) -> bool:
    """Whether the story has come as far as this."""
    is_behind = cursor.sequence <= row["event_count"] and cursor.version <= row["version"]
    return is_behind and (not cursor.generation or (cursor.generation, cursor.offset) <= output_length(tx, row["id"]))


def _fresh(tx: Transaction, row: Row, *, was_reset: bool) -> News:
    """A snapshot, and the output from its beginning. Of a job that has ended the end as well: only an event has the
    id that a reader can end with.
    """
    place = Place(Cursor(row["event_count"], row["version"]), _progress_of(row["progress"]))
    if _has_ended(row):
        _, end = _up_to_end(list_job_events(tx, row["id"], after=0))
        sequence = end["sequence"] - 1 if end else row["event_count"]
        place = replace(place, cursor=replace(place.cursor, sequence=sequence))
    data: Document = {"job": job_document(row), "output_offset": output_length(tx, row["id"])[1]}
    snapshot = Message(SNAPSHOT, data | ({"reset": True} if was_reset else {}), None)
    rest = news(tx, row, place)
    return replace(rest, messages=(snapshot, *rest.messages))


def _up_to_end(events: Sequence[Row]) -> tuple[Sequence[Row], Row | None]:
    """The events before the job's end, and that; what comes after it is not told."""
    for index, event in enumerate(events):
        if event["type"] in ENDS:
            return events[:index], event
    return events, None


def _seen(row: Row, place: Place) -> Place:
    """The reader has seen this row, whatever of it was worth telling."""
    sequence, version = max(place.cursor.sequence, row["event_count"]), max(place.cursor.version, row["version"])
    cursor = replace(place.cursor, sequence=sequence, version=version)
    return Place(cursor, place.progress or _progress_of(row["progress"]))


def _after_event(event: Row, place: Place) -> Place:
    job = (event["data"] or {}).get("job")  # erased with the job's input and output
    if not isinstance(job, dict):
        return replace(place, cursor=replace(place.cursor, sequence=event["sequence"]))
    version = max(place.cursor.version, job["version"])
    return Place(replace(place.cursor, sequence=event["sequence"], version=version), _progress_of(job["progress"]))


def _has_ended(row: Row) -> bool:
    return is_terminal(JobState(row["state"]))


def _is_further(row: Row, place: Place) -> bool:
    progress = _progress_of(row["progress"])
    return row["version"] > place.cursor.version and progress is not None and progress != place.progress


def _progress_message(tx: Transaction, row: Row, after: Place) -> Message:
    data = {"job": job_document(row, with_input=False)}
    return Message(
        StreamedType.PROGRESS,
        passing_event(tx, row, StreamedType.PROGRESS, mark=f"v{row['version']}", data=data),
        after,
    )


def _progress_of(document: Any) -> tuple[Any, Any] | None:
    return (document.get("fraction"), document.get("message")) if document else None
