"""A run as a mapping reads it: from a status answer, from a submit's, from an event."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from jobs.config.mapping.model import Artifacts, RunShape, Search
from jobs.core.errors import Transient
from jobs.core.observations import JobError, Link, Progress
from jobs.core.queries import Query
from jobs.core.states import JobState
from jobs.core.templates import Values, as_text
from jobs.net.http import Answer
from jobs.providers import answers
from jobs.providers.port import Report

_MAX_MESSAGE_CHARS = 2000
_MAX_CODE_CHARS = 100
#: Longer lists of errors say no more.
_MAX_ERRORS = 20


def run_id(query: Query, document: object) -> str | None:
    """Return the id a document names; numbers count as their text."""
    found = query.find(document)
    if isinstance(found, int) and not isinstance(found, bool):
        found = str(found)
    return answers.id_of(found)


def read_run(shape: RunShape, document: object, *, run: str | None, artifacts: Artifacts, now: datetime) -> Report:
    """Read what a document says of a run.

    Args:
        shape: how.
        document: the answer or the event.
        run: its id.
        artifacts: how long links are good.
        now: when it was said.
    """
    state, unknown = state_of(shape, document)
    return Report(
        provider_job_id=run,
        state=state,
        unknown_status=unknown,
        progress=_progress(shape, document),
        output=_found(shape.output, document),
        error=_error(shape, document) if state is JobState.FAILED else None,
        links=tuple(_links(_found(shape.urls, document), artifacts=artifacts, now=now)),
        cost=answers.cost_of(_found(shape.cost, document)),
        reference=answers.id_of(_found(shape.reference, document)),
    )


def state_of(shape: RunShape, document: object) -> tuple[JobState | None, str | None]:
    """Return our state, or the word where we do not know it: a new word is never guessed, whatever else is said."""
    state, unknown = answers.status_of({"word": word_of(shape, document)}, "word", states=shape.states)
    is_failed = shape.failed_if is not None and shape.failed_if.is_true(document)
    if is_failed and state not in (None, JobState.CANCELED):
        return JobState.FAILED, None
    return state, unknown


def word_of(shape: RunShape, document: object) -> Any:
    """Return the status word; numbers and booleans count as their text."""
    word = shape.state.find(document)
    return as_text(word) if isinstance(word, bool | int) else word


def _found(query: Query | None, document: object) -> Any:
    return None if query is None else query.find(document)


def _progress(shape: RunShape, document: object) -> Progress | None:
    number = answers.number_of(_found(shape.progress, document))
    progress = answers.progress_of(number / shape.progress_max) if number is not None else None
    message = _found(shape.progress_message, document)
    if not isinstance(message, str) or not message:
        return progress
    return Progress(progress.fraction if progress else None, message[:_MAX_MESSAGE_CHARS])


def _error(shape: RunShape, document: object) -> JobError:
    found = _found(shape.error, document)
    code = _found(shape.error_code, document)
    said = _said(found) or JobError("provider_error", f"the provider said {as_text(word_of(shape, document))!r}")
    if isinstance(code, str | int) and not isinstance(code, bool) and str(code):
        return JobError(str(code)[:_MAX_CODE_CHARS], said.message[:_MAX_MESSAGE_CHARS])
    return JobError(said.code, said.message[:_MAX_MESSAGE_CHARS])


def _said(found: Any) -> JobError | None:
    """The error in text, object or list; of several, the first code and every message."""
    if not isinstance(found, list):
        return answers.error_of(found)
    errors = [error for item in found[:_MAX_ERRORS] if (error := answers.error_of(item)) is not None]
    return JobError(errors[0].code, "; ".join(error.message for error in errors)) if errors else None


def _links(found: Any, *, artifacts: Artifacts, now: datetime) -> Iterator[Link]:
    """Links with the time they end, where the provider names none and the mapping says how long they last."""
    ends = (now + artifacts.expires).isoformat() if artifacts.expires else None
    for item in found if isinstance(found, list) else [found]:
        named = {"url": item} if isinstance(item, str) and item else item
        if isinstance(named, Mapping):
            yield from answers.links_of([{"expires_at": ends, **named}])


def matching(search: Search, body: object, values: Values, answer: Answer) -> list[object]:
    """The items of a list that are ours.

    Raises:
        Transient: There is no list.
    """
    items = search.items.find(body) if search.items else None
    if not isinstance(items, list):
        raise Transient(answers.describe(answer, "not a list"))
    return [item for item in items if _is_ours(search, item, values)]


def _is_ours(search: Search, item: object, values: Values) -> bool:
    if search.match is None:
        return True
    shown = search.match.find(item)
    if not isinstance(shown, str):
        return False
    is_equal = search.equals is None or shown == search.equals.write(values)
    return is_equal and (search.contains is None or search.contains.write(values) in shown)
