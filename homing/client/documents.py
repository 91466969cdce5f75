"""What the API answers, as values. What a newer fleet adds is kept in `document` and breaks nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from jobs.core import instants
from jobs.core.events import StreamedType
from jobs.core.states import JobState, is_terminal

Document: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the provider says it is; `fraction` from 0 to 1."""

    fraction: float | None
    message: str | None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a job failed: `code` for programs, `message` for people."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Review:
    """Why a job waits for a person."""

    reason: str
    since: datetime | None
    detail: str | None


@dataclass(frozen=True, slots=True)
class Job:
    """A job, as it was when it was read.

    Attributes:
        version: grows with every stored change, progress included.
        input: what the provider is asked to do; None where an event told of the job.
        output: what the provider returned.
        artifacts: its result files, as the API describes them.
        document: all of it, as it came.
    """

    id: str
    provider: str
    state: JobState
    version: int
    provider_job_id: str | None = None
    progress: Progress | None = None
    input: Mapping[str, Any] | None = None
    output: Any = None
    error: Failure | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    review: Review | None = None
    cancel_requested_at: datetime | None = None
    expected_at: datetime | None = None
    deadline_at: datetime | None = None
    created_at: datetime | None = None
    submitted_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    attempts: int = 0
    cost: float | None = None
    artifacts: tuple[Mapping[str, Any], ...] = ()
    document: Document = field(default_factory=dict, repr=False, compare=False)

    @property
    def is_terminal(self) -> bool:
        """Whether it has ended; nothing changes that any more."""
        return is_terminal(self.state)

    @property
    def is_success(self) -> bool:
        """Whether it ended well."""
        return self.state is JobState.SUCCEEDED


_PLAIN = ("provider_job_id", "input", "output", "metadata", "attempts", "cost")
_INSTANTS = (
    "cancel_requested_at",
    "expected_at",
    "deadline_at",
    "created_at",
    "submitted_at",
    "started_at",
    "finished_at",
)


def read_job(document: Document) -> Job:
    """Read a job's document.

    Raises:
        KeyError, ValueError: it is none.
    """
    progress, error, review = (document.get(name) for name in ("progress", "error", "review"))
    return Job(
        id=document["id"],
        provider=document["provider"],
        state=JobState(document["state"]),
        version=document["version"],
        progress=None if progress is None else Progress(progress.get("fraction"), progress.get("message")),
        error=None if error is None else Failure(error["code"], error["message"]),
        review=None if review is None else Review(review["reason"], _instant(review, "since"), review.get("detail")),
        artifacts=tuple(document.get("artifacts") or ()),
        document=document,
        **{name: document[name] for name in _PLAIN if name in document},
        **_instants(document),
    )


@dataclass(frozen=True, slots=True)
class OutputPiece:
    """A piece of a job's output, told while it is made.

    Attributes:
        text: what is added; empty where the output begins anew.
        offset: where it begins in the whole output, in characters as Python counts them.
        attempt: of the job, whose output it is.
        begins_anew: what was told so far is void; the whole output follows from its beginning.
    """

    text: str
    offset: int = 0
    attempt: int = 1
    begins_anew: bool = False


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One message of a job's stream.

    Attributes:
        type: `snapshot`, an event's type, `job.progress`, `job.output.delta` or `job.output.reset`.
        id: where to resume after it; None where it cannot be resumed after.
        data: its document.
    """

    type: str
    id: str | None
    data: Mapping[str, Any]

    @property
    def job(self) -> Job | None:
        """The job as this message tells it, where it does."""
        document = job_in(self.data)
        return None if document is None else read_job(document)

    @property
    def output(self) -> OutputPiece | None:
        """The piece of output that this message tells, where it does."""
        return output_in(self.type, self.data)


def output_in(event: str, envelope: Document) -> OutputPiece | None:
    """The piece of output in a message of a stream; None in all others."""
    if event not in (StreamedType.OUTPUT_DELTA, StreamedType.OUTPUT_RESET):
        return None
    data = envelope["data"]
    if event == StreamedType.OUTPUT_RESET:
        return OutputPiece("", attempt=data["attempt"], begins_anew=True)
    return OutputPiece(data["text"], data["offset"], data["attempt"])


def job_in(data: Document) -> Document | None:
    """The job's document in a message: in an event's envelope, by its name, or the message itself."""
    envelope = data.get("data")
    places = (envelope.get("job") if isinstance(envelope, Mapping) else None, data.get("job"), data)
    jobs = (place for place in places if isinstance(place, Mapping))
    return next((job for job in jobs if {"id", "state", "version"} <= job.keys()), None)


def _instants(document: Document) -> dict[str, Any]:
    return {name: _instant(document, name) for name in _INSTANTS}


def _instant(document: Document, name: str) -> datetime | None:
    text = document.get(name)
    return None if text is None else instants.from_text(text)
