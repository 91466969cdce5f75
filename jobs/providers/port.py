"""What Homing asks of a provider, and what a provider may answer.

An adapter translates; it decides nothing. Its capabilities are data, and the services act on them. Network calls
raise the classes below; ``read_webhook`` is pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Protocol, runtime_checkable

from jobs.core.errors import JobsError, Permanent, UnknownOutcome
from jobs.core.observations import JobError, Json, Link, Progress
from jobs.core.states import JobState

_MAX_KIND_CHARS = 200


class KeyUse(StrEnum):
    """What the provider does with an idempotency key it has seen."""

    REPLAY = "replay"  # answers the same run
    REJECT = "reject"  # refuses: a run exists, but does not say which
    NONE = "none"  # ignores it: every request is a new run


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What may be assumed of a provider.

    Attributes:
        keys: Use of idempotency keys.
        key_window: How long a key is remembered, from the first send; None = always.
        search: Whether a run can be found by our key or token.
        cancel: Whether a run can be canceled.
        callback_per_request: Whether a submit may name its own callback URL.
        webhook_is_hint: Whether an event only says "look", because its body is not bound by a signature.
        lists_artifacts: Whether a success brings links to its result files.
        address_field: The field of the job's input without which a run's id does not lead to it.
        kind_field: The field of the job's input that says what kind of work it is, as far as its duration goes.
        polls_min_interval: A run is not read more often than this.
        receives_only: It is no job provider: it takes no submits, and its events are handed on, whatever their body.
        result_ttl: How long a result stays at the provider, or its link is good; None = not known, or for ever.
    """

    keys: KeyUse = KeyUse.NONE
    key_window: timedelta | None = None
    search: bool = False
    cancel: bool = True
    callback_per_request: bool = True
    webhook_is_hint: bool = False
    lists_artifacts: bool = False
    address_field: str | None = None
    kind_field: str = "model"
    polls_min_interval: timedelta = timedelta(0)
    result_ttl: timedelta | None = None
    receives_only: bool = False

    def kind(self, inputs: Json) -> str | None:
        """What kind of work an input asks for; None where it does not say."""
        value = inputs.get(self.kind_field) if isinstance(inputs, Mapping) else None
        return value[:_MAX_KIND_CHARS] if isinstance(value, str) else None

    def address(self, provider_job_id: str, inputs: Json) -> str:
        """What ``status`` and ``cancel`` are called with: the id, behind the input's field where one is needed."""
        value = inputs.get(self.address_field) if self.address_field and isinstance(inputs, Mapping) else None
        return f"{value}/{provider_job_id}" if isinstance(value, str) and value else provider_job_id


@dataclass(frozen=True, slots=True)
class SubmitRequest:
    """One submit, the same on every try of an attempt."""

    input: Mapping[str, Json]
    idempotency_key: str
    token: str
    callback_url: str
    job_id: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What a provider says of one run.

    Attributes:
        provider_job_id: The run it speaks of.
        state: Our word for its status; None where it named none (an acceptance) or one we do not know.
        unknown_status: The status word we do not know, as text, at most 100 characters.
        reference: Our token or key, where the provider names it with the run: the proof that we began it.
    """

    provider_job_id: str | None
    state: JobState | None = None
    unknown_status: str | None = None
    progress: Progress | None = None
    output: Json = None
    error: JobError | None = None
    links: tuple[Link, ...] = ()
    cost: float | None = None
    reference: str | None = None


@dataclass(frozen=True, slots=True)
class WebhookReport:
    """What an incoming event says.

    Attributes:
        report: Its content; None for an event of no interest (another type, another system's object).
        delivery_id: The body's own id for the delivery, where the adapter declares one and it is usable.
        ignored_because: Why there is no report.
        is_hint: This event only says "look", whatever its provider's others say.
        token: Our attempt's token, where a provider that calls one URL per account carries it in the body. It counts
            only where the URL has none.
    """

    report: Report | None
    delivery_id: str | None = None
    ignored_because: str | None = None
    token: str | None = None
    is_hint: bool = False


class Refused(Permanent):
    """The provider definitely did not take the submit, and will not take it if asked again."""

    slug = "refused"

    def __init__(self, detail: str = "", *, code: str = "refused") -> None:
        super().__init__(detail)
        self.code = code


class KeyReused(UnknownOutcome):
    """The provider has seen this key before: a run exists, and it does not say which."""

    slug = "key-reused"


class Gone(JobsError):
    """The provider does not know the run (404, 410)."""

    slug = "gone"
    status = 404


class AlreadyFinished(JobsError):
    """A cancel came too late: the run has ended. Read its status."""

    slug = "already-finished"
    status = 409


class Provider(Protocol):
    """One account at a provider.

    Every network method may raise ``Transient`` (definitely not done; try again, after ``retry_after`` where set).
    """

    @property
    def capabilities(self) -> Capabilities:
        """What may be assumed of this account."""
        ...

    def submit(self, request: SubmitRequest) -> Report:
        """Starts a run.

        Raises:
            Transient: It was definitely not accepted (never sent, 429, or a refusal that time may cure).
            Refused: It was definitely not accepted, for good.
            UnknownOutcome: It may have been accepted (time-out, reset, 5xx, unusable answer).
            KeyReused: A run with this key exists.
        """
        ...

    def find(self, *, idempotency_key: str, token: str) -> tuple[Report, ...]:
        """The runs the provider knows under our key or token; empty may also mean "not yet".

        Raises:
            Transient: It did not answer.
        """
        ...

    def status(self, provider_job_id: str) -> Report:
        """Reads a run, by its address (see :meth:`Capabilities.address`).

        Raises:
            Transient: No usable answer: judged by shape, never by the status line alone.
            Gone: The provider does not know the run.
        """
        ...

    def cancel(self, provider_job_id: str) -> Report | None:
        """Asks the provider to end a run, by its address; returns its answer where that names the run's state.

        Raises:
            Transient: No usable answer.
            Gone: The provider does not know the run.
            AlreadyFinished: The run had ended before.
        """
        ...

    def read_webhook(self, body: Json, headers: Mapping[str, str]) -> WebhookReport:
        """Reads an incoming event's parsed body, whose text any database can store. Pure.

        Raises:
            Unusable: The body has not the shape of this provider's events.
        """
        ...


@runtime_checkable
class GivesFilesToItsKey(Protocol):
    """An adapter whose result files are given away only against its credential."""

    @property
    def file_headers(self) -> Mapping[str, str]:
        """What a download from the account's own host must carry; no other host is sent it."""
        ...


@dataclass(frozen=True, slots=True)
class OutputDelta:
    """A piece of a run's output, told while it is made.

    Attributes:
        text: What was added; never empty.
        place: The provider's own mark after this piece, to go on from; None where it gives none.
    """

    text: str
    place: str | None = None


@runtime_checkable
class StreamsOutput(Protocol):
    """An adapter whose runs can be listened to while they make their output."""

    @property
    def resumes_output(self) -> bool:
        """Whether :meth:`follow_output` can go on after a place; otherwise it always begins at the beginning."""
        ...

    def can_follow(self, inputs: Mapping[str, Json]) -> bool:
        """Whether a run of this input tells its output as it is made. Pure."""
        ...

    def follow_output(self, provider_job_id: str, *, after: str | None = None) -> Iterator[OutputDelta]:
        """Listens to a run, by its address, and yields its output until the provider says that it is whole.

        The connection is open between two pieces: whoever stops early closes the iterator.

        Args:
            provider_job_id: The run's address (see :meth:`Capabilities.address`).
            after: The place of the last piece that was kept; None begins at the beginning.

        Raises:
            Transient: No usable answer, silence for too long, or an end without the provider's own word for it: what
                was yielded before stands.
            Gone: The provider has no such output, or keeps it no longer.
        """
        ...
