"""What a mapping says once it is read: templates for what is sent, queries for what comes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, TypeAlias

from jobs.core.queries import Query
from jobs.core.states import JobState
from jobs.core.templates import Template

#: A body: templates where a text stood, and everything else as it was written.
Shape: TypeAlias = "Template | bool | int | float | list[Shape] | dict[str, Shape]"
States: TypeAlias = Mapping[str, JobState]


@dataclass(frozen=True, slots=True)
class Call:
    """One request.

    Attributes:
        path: begins with a slash, and is what follows `base_url`.
        query: name and value of each parameter.
        headers: beside those of the account.
        body: none: the request has no body.
        encoding: how the body is written.
    """

    method: str
    path: Template
    query: tuple[tuple[str, Template], ...] = ()
    headers: Mapping[str, Template] = field(default_factory=dict)
    body: Shape | None = None
    encoding: Literal["json", "form"] = "json"


@dataclass(frozen=True, slots=True)
class Auth:
    """How the account shows who it is: a header, a parameter of the query, or user and password."""

    headers: Mapping[str, Template] = field(default_factory=dict)
    query: tuple[tuple[str, Template], ...] = ()
    user: Template | None = None
    password: Template | None = None


@dataclass(frozen=True, slots=True)
class Idempotency:
    """What the provider does with a key it has seen.

    Attributes:
        header: where the key is sent; none: the submit's own templates send it.
        window: how long it is remembered, from the first send.
        reuse: `replay` answers the same run, `reject` refuses without saying which.
        rejected_if: over the refusal's body: whether it is about the key.
    """

    header: str | None
    window: timedelta
    reuse: Literal["replay", "reject"] = "replay"
    rejected_if: Query | None = None


@dataclass(frozen=True, slots=True)
class Submit:
    """How a run is begun.

    Attributes:
        id: over the answer: the run's id.
        refused_if: over a 2xx answer: whether it is a refusal nevertheless.
        error: over a refusal: why.
        address: the input's field without which a run's id does not lead to it.
    """

    call: Call
    id: Query
    idempotency: Idempotency | None = None
    refused_if: Query | None = None
    error: Query | None = None
    address: str | None = None


@dataclass(frozen=True, slots=True)
class Search:
    """How runs are found by our key or token.

    Attributes:
        calls: made in turn until one finds something.
        items: over the answer: the list to look through; none: `id` is asked of the answer as a whole.
        id: the runs' ids, or one of them; of an item where `items` is given.
        match: of an item: the text that shows whose it is.
        equals: what `match` must be.
        contains: what `match` must contain.
    """

    calls: tuple[Call, ...]
    id: Query
    items: Query | None = None
    match: Query | None = None
    equals: Template | None = None
    contains: Template | None = None


@dataclass(frozen=True, slots=True)
class RunShape:
    """How a run is read, from a status answer or from an event.

    Attributes:
        state: its status word.
        states: our state by status word, lower case.
        failed_if: whether it failed, whatever its word is (unless that says canceled).
        error: why: text, `{code, message}`, or a list of either.
        error_code: a stable word for it.
        progress_max: what `progress` counts up to.
        urls: where its result files are: texts, or objects with `url` and perhaps more.
        reference: our token or key, where the provider names it with the run.
    """

    state: Query
    states: States
    failed_if: Query | None = None
    error: Query | None = None
    error_code: Query | None = None
    output: Query | None = None
    progress: Query | None = None
    progress_max: float = 1.0
    progress_message: Query | None = None
    cost: Query | None = None
    urls: Query | None = None
    reference: Query | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """How a run is read.

    Attributes:
        id: over the answer: the run it speaks of; none: `submit.id` is tried.
        gone: HTTP statuses that say the provider does not know the run.
        gone_words: status words that say so under 2xx, lower case.
        min_interval: a run is not read more often than this.
    """

    call: Call
    run: RunShape
    id: Query | None = None
    gone: frozenset[int] = frozenset({404, 410})
    gone_words: frozenset[str] = frozenset()
    min_interval: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True)
class Cancel:
    """How a run is ended.

    Attributes:
        finished: HTTP statuses that say it can no longer be ended.
        settles: whether a 2xx is the end itself; else a later read shows it.
        only_open: whether the run is read first, and left alone where it has ended.
    """

    call: Call
    finished: frozenset[int] = frozenset({409})
    settles: bool = False
    only_open: bool = False


@dataclass(frozen=True, slots=True)
class Stream:
    """How a run tells its output while it makes it, as server-sent events.

    Attributes:
        text: over a message's JSON: what was added; none: the message is the text itself.
        event: the name of the messages that bring text; none: all do.
        end: names of messages, or whole messages, by which the provider says that the output is whole.
        ended_if: over a message's JSON: whether it says so.
        only_if: over the job's input: whether such a run tells its output; none: each does.
        resumes: whether the id of a message is a place to go on from.
    """

    call: Call
    text: Query | None = None
    event: str | None = None
    end: frozenset[str] = frozenset()
    ended_if: Query | None = None
    only_if: Query | None = None
    resumes: bool = False


@dataclass(frozen=True, slots=True)
class Webhook:
    """How an event is read.

    Attributes:
        only_if: over the event: whether it is of interest.
        token: over the event: our attempt's token, where the provider carries it there.
        is_hint: whether an event only says "look".
        is_trusted: whether even a success that lacks its result is believed.
    """

    job_id: Query
    run: RunShape
    delivery_id: Query | None = None
    only_if: Query | None = None
    token: Query | None = None
    is_hint: bool = False
    is_trusted: bool = False


@dataclass(frozen=True, slots=True)
class Artifacts:
    """How long the links to result files are good.

    Attributes:
        expires: how long a link is good, from when it was read.
        refresh: what brings fresh links: `status`, a new read of the run.
    """

    expires: timedelta | None = None
    refresh: Literal["status"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderMapping:
    """One provider, described.

    Attributes:
        headers: sent with every request.
        secrets: by the name templates give them.
        values: plain values templates may use.
    """

    submit: Submit
    status: Status
    search: Search | None = None
    cancel: Cancel | None = None
    stream: Stream | None = None
    webhook: Webhook | None = None
    artifacts: Artifacts = Artifacts()
    auth: Auth = Auth()
    headers: Mapping[str, Template] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    values: Mapping[str, object] = field(default_factory=dict)

    @property
    def calls_back(self) -> bool:
        """Whether a submit names its own callback URL."""
        return any(name == "callback_url" for name, _inner in reads(self.submit.call))


def reads(call: Call) -> frozenset[tuple[str | None, str | None]]:
    """Return what a request's templates read: the first name, and the one inside it."""
    named = [template for _name, template in call.query]
    templates = [call.path, *named, *call.headers.values(), *templates_in(call.body)]
    return frozenset(root for template in templates for hole in template.holes for root in hole.query.roots())


def templates_in(shape: Shape | None) -> tuple[Template, ...]:
    """Return every template of a body."""
    if isinstance(shape, Template):
        return (shape,)
    children = shape.values() if isinstance(shape, dict) else shape if isinstance(shape, list) else ()
    return tuple(template for child in children for template in templates_in(child))
