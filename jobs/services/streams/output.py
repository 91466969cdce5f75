"""What a stream tells of a job's output: its text from wherever a reader is, in pieces that grow with its delay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

from jobs.core.cursors import Cursor
from jobs.core.events import StreamedType
from jobs.services.documents import Document, Row
from jobs.services.output.streams import GRACE
from jobs.services.streams.messages import Message, Place, passing_event
from jobs.storage.database import Transaction
from jobs.storage.output import find_stream, list_output

#: One message holds at most so many characters, and one look brings at most so many messages: the next goes on.
PIECE_CHARS = 32 * 1024
PIECES = 4
#: Batches of one look. A reader far behind gets them merged.
_BATCHES = 2000
#: Longer than any reading goes on after its job's end: then its text is as whole as it will be.
_HOLD = GRACE + timedelta(seconds=15)


@dataclass(frozen=True, slots=True)
class OutputNews:
    """What there is to tell.

    Attributes:
        messages: The next pieces.
        place: Where the reader is after them.
        is_whole: Nothing can follow them.
    """

    messages: tuple[Message, ...]
    place: Place
    is_whole: bool


def output_length(tx: Transaction, job_id: str) -> tuple[int, int]:
    """The generation of a job's text, and how long it is; zeros where it has none."""
    stream = find_stream(tx, job_id)
    return (stream["generation"], stream["length"]) if stream else (0, 0)


def output_news(tx: Transaction, row: Row, place: Place, *, told_now: bool = True) -> OutputNews:
    """The output after a place.

    Args:
        tx: The open transaction.
        row: The job, read in it before.
        place: What the reader has been told.
        told_now: Otherwise only whether there is anything is found out.
    """
    stream = find_stream(tx, row["id"])
    if stream is None:
        return OutputNews((), place, is_whole=True)
    if not told_now:
        return OutputNews((), place, is_whole=_is_at_end(place.cursor, stream) and not _may_grow(tx, row, stream))
    messages = tuple(_messages(tx, row, stream, place))
    after = (messages[-1].place if messages else None) or replace(place, cursor=_current(place.cursor, stream))
    return OutputNews(messages, after, is_whole=_is_at_end(after.cursor, stream) and not _may_grow(tx, row, stream))


def _messages(tx: Transaction, row: Row, stream: Row, place: Place) -> Iterator[Message]:
    cursor = _current(place.cursor, stream)
    if place.cursor.generation not in (0, cursor.generation):
        yield _reset(tx, row, stream, replace(place, cursor=cursor))
    for text in _pieces(tx, cursor, stream):
        offset, cursor = cursor.offset, replace(cursor, offset=cursor.offset + len(text))
        yield _delta(tx, row, stream, replace(place, cursor=cursor), offset=offset, text=text)


def _pieces(tx: Transaction, cursor: Cursor, stream: Row) -> Iterator[str]:
    if cursor.offset >= stream["length"]:
        return
    batches = list_output(tx, stream["job_id"], generation=cursor.generation, offset=cursor.offset, limit=_BATCHES)
    known = cursor.offset - batches[0]["offset"] if batches else 0
    text = "".join(batch["text"] for batch in batches)[known : known + PIECES * PIECE_CHARS]
    for begin in range(0, len(text), PIECE_CHARS):
        yield text[begin : begin + PIECE_CHARS]


def _current(cursor: Cursor, stream: Row) -> Cursor:
    """What was told of an older text does not count."""
    is_current = cursor.generation == stream["generation"]
    return cursor if is_current else replace(cursor, generation=stream["generation"], offset=0)


def _is_at_end(cursor: Cursor, stream: Row) -> bool:
    """Who was told nothing, of a text that has nothing, is at its end."""
    return cursor.generation in (0, stream["generation"]) and cursor.offset >= stream["length"]


def _may_grow(tx: Transaction, row: Row, stream: Row) -> bool:
    """Whether text may still come. A job's end is told after it; for so long only, as readers may die for good."""
    if stream["next_read_at"] is None:
        return False
    return row["finished_at"] is None or tx.now < row["finished_at"] + _HOLD


def _delta(tx: Transaction, row: Row, stream: Row, after: Place, *, offset: int, text: str) -> Message:
    mark = f"g{stream['generation']}o{offset}-{after.cursor.offset}"
    data = {**_about(row, stream), "offset": offset, "text": text}
    return Message(
        StreamedType.OUTPUT_DELTA, passing_event(tx, row, StreamedType.OUTPUT_DELTA, mark=mark, data=data), after
    )


def _reset(tx: Transaction, row: Row, stream: Row, after: Place) -> Message:
    data = passing_event(tx, row, StreamedType.OUTPUT_RESET, mark=f"g{stream['generation']}", data=_about(row, stream))
    return Message(StreamedType.OUTPUT_RESET, data, after)


def _about(row: Row, stream: Row) -> Document:
    return {"job": {"id": row["id"]}, "attempt": stream["attempt"]}
