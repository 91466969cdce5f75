"""What a stream is made of: messages, and the place a reader has come to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jobs.core import instants
from jobs.core.cursors import Cursor
from jobs.core.events import SCHEMA_VERSION, STATE_EVENTS
from jobs.core.states import is_terminal
from jobs.services.documents import Document, Row
from jobs.storage.database import Transaction

#: The types of events that end a job's story.
ENDS = frozenset(str(event_type) for state, event_type in STATE_EVENTS.items() if is_terminal(state))


@dataclass(frozen=True, slots=True)
class Place:
    """What a reader has been told.

    Attributes:
        cursor: The last event, the version of the job, and the end of its output.
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
        return self.type in ENDS


def passing_event(tx: Transaction, row: Row, event_type: str, *, mark: str, data: Document) -> Document:
    """The envelope of what only streams tell, and nobody keeps as an event.

    Args:
        tx: The open transaction.
        row: The job.
        event_type: Its type.
        mark: What tells it from the job's others of any type; the same whoever is told.
        data: What it says.
    """
    return {
        "id": f"evt_{row['id'].removeprefix('job_')}{mark}",
        "type": event_type,
        "schema_version": SCHEMA_VERSION,
        "sequence": None,
        "occurred_at": instants.to_text(tx.now),
        "tenant": row["tenant"],
        "data": data,
    }
