"""Reading what providers answer: by its shape, never by its status line alone.

Pieces for adapters to put together. A gateway's page under status 200, an error object in place of the run, a status
that is no text: none of these may pass for news of a job, and none may raise anything but the port's errors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from jobs.core.backoff import parse_retry_after
from jobs.core.errors import JobsError, Transient, UnknownOutcome, Unusable
from jobs.core.observations import JobError, Json, Link, Progress
from jobs.core.states import JobState
from jobs.core.text import clean, decode_json, excerpt
from jobs.net.http import Answer
from jobs.providers.port import Gone, Refused

Body: TypeAlias = Mapping[str, Any]

# A provider that says "slow down" without saying for how long.
DEFAULT_RETRY_AFTER = timedelta(seconds=10)
# Nobody is obeyed for longer than this: the job has a deadline of its own.
LONGEST_RETRY_AFTER = timedelta(hours=1)
_MAX_ID_CHARS = 255
_MAX_WORD_CHARS = 100
_MAX_MESSAGE_CHARS = 2000
#: No run costs as much. Costs are added up, and what two numbers near a float's end come to is none any more: on
#: PostgreSQL nothing that follows could be written.
_MAX_COST = 1e12

#: Slugs of faults, beside their class: nobody but a gateway answered; the provider itself did, and said no.
AWAY, DECLINED = "away", "declined"
_GATEWAY = frozenset({502, 503, 504})
_OVERLOADED = frozenset({429, 503})
# Not accepted, but time or an operator can cure it: no money, no right, too fast, too early.
_CURABLE = frozenset({401, 402, 403, 425, 429})
# "I may be at it": the request timed out on its way in; another one with the same key is in progress.
_IN_DOUBT = frozenset({408, 409})
# Said by a gateway that cannot find its provider as readily as by the provider itself.
_ROUTING = frozenset({404, 405})


def read_object(answer: Answer) -> Body:
    """The JSON object of a 2xx answer, cleaned.

    Raises:
        Transient: It is not one.
    """
    body = _json_of(answer)
    if not isinstance(body, dict):
        raise Transient(describe(answer, "not an answer"))
    return body


def read_any(answer: Answer) -> Json:
    """The JSON of a 2xx answer, an object or a list, cleaned.

    Raises:
        Transient: It is neither.
    """
    body = _json_of(answer)
    if not isinstance(body, dict | list):
        raise Transient(describe(answer, "not an answer"))
    return body


def read_run(answer: Answer, *, run: str) -> Body:
    """The JSON object of a 2xx answer that speaks of this very run.

    Raises:
        Transient: It is not one, or it speaks of another run.
    """
    body = read_object(answer)
    if body.get("id") != run:
        raise Transient(describe(answer, f"not an answer about run {run}"))
    return body


def submit_fault(answer: Answer, *, now: datetime) -> JobsError:
    """What a submit answered by other than 2xx comes to: refused, not accepted for now, or not known."""
    words, retry_after = describe(answer, "answered"), asked_wait(answer, now=now)
    status = answer.status
    if status in _CURABLE or 300 <= status < 400 or (status in _ROUTING and _is_page(answer)):
        return Transient(words, retry_after=retry_after, slug=_slug_of(answer))
    if status in _IN_DOUBT or not 400 <= status < 500:
        return UnknownOutcome(words, retry_after=retry_after, slug=_slug_of(answer))
    return Refused(message_of(answer) or words)


def read_fault(answer: Answer, *, now: datetime) -> JobsError:
    """What a read or a cancel answered by other than 2xx comes to."""
    words = describe(answer, "answered")
    if answer.status in (404, 410):
        return Gone(words)
    return delay(answer, now=now)


def delay(answer: Answer, *, now: datetime) -> Transient:
    """What an answer other than 2xx comes to where asking again is all there is to do."""
    return Transient(describe(answer, "answered"), retry_after=asked_wait(answer, now=now), slug=_slug_of(answer))


def _slug_of(answer: Answer) -> str | None:
    """Whose word it is; None where it cannot be told: 404 and 405 may be a gateway's, 408 is no answer."""
    if answer.status in _GATEWAY:
        return AWAY
    is_word = 400 <= answer.status < 500 and answer.status != 408
    return DECLINED if is_word and not (answer.status in _ROUTING and _is_page(answer)) else None


def asked_wait(answer: Answer, *, now: datetime) -> timedelta | None:
    """How long an overloaded provider asks us to stay away; None where it does not ask."""
    asked = answer.headers.get("Retry-After")
    if answer.status not in _OVERLOADED or (asked is None and answer.status != 429):
        return None
    return parse_retry_after(asked, now=now, default=DEFAULT_RETRY_AFTER, maximum=LONGEST_RETRY_AFTER)


def describe(answer: Answer, words: str) -> str:
    """An answer for a log or a person: its status and its first 200 bytes."""
    return f"{words}: HTTP {answer.status}, {excerpt(answer.body, limit=200) or 'no body'}"


def message_of(answer: Answer) -> str | None:
    """The provider's own words for a fault, where its JSON has some."""
    body = _json_of(answer)
    if not isinstance(body, dict):
        return None
    error = error_of(body.get("error"))
    return error.message if error else detail_of(body)


def detail_of(body: Json) -> str | None:
    """The words of a fault under ``detail``: text, or a list of objects with a ``msg`` each."""
    detail = body.get("detail") if isinstance(body, Mapping) else None
    if isinstance(detail, list):
        detail = "; ".join(
            item["msg"] for item in detail if isinstance(item, dict) and isinstance(item.get("msg"), str)
        )
    return detail[:_MAX_MESSAGE_CHARS] if isinstance(detail, str) and detail else None


def code_of(answer: Answer) -> str | None:
    """The provider's own code for a fault, where its JSON has one."""
    body = _json_of(answer)
    error = error_of(body.get("error")) if isinstance(body, dict) else None
    return error.code if error else None


def status_of(body: Body, field: str, *, states: Mapping[str, JobState]) -> tuple[JobState | None, str | None]:
    """Our state for a status word, or the word as text where we do not know it.

    Case and outer blanks do not matter. A status that is missing or no text is as unknown as a new word.
    """
    word = body.get(field)
    known = states.get(word.strip().lower()) if isinstance(word, str) else None
    if known is not None:
        return known, None
    text = word.strip() if isinstance(word, str) else "no status" if word is None else repr(word)
    return None, (text or "no status")[:_MAX_WORD_CHARS]


def id_of(value: object) -> str | None:
    """An id: text of 1 to 255 characters, or nothing usable."""
    return value if isinstance(value, str) and 1 <= len(value) <= _MAX_ID_CHARS else None


def number_of(value: object) -> float | None:
    """A finite number, or nothing usable."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def progress_of(value: object) -> Progress | None:
    """A fraction from 0 to 1, or nothing usable."""
    fraction = number_of(value)
    return Progress(fraction) if fraction is not None and 0 <= fraction <= 1 else None


def cost_of(value: object) -> float | None:
    """An amount of money from 0 to what a run may cost, or nothing usable."""
    cost = number_of(value)
    return cost if cost is not None and 0 <= cost <= _MAX_COST else None


def error_of(value: object) -> JobError | None:
    """Why a run failed, from ``{"code", "message"}`` or bare text."""
    if isinstance(value, str) and value:
        return JobError("provider_error", value[:_MAX_MESSAGE_CHARS])
    if not isinstance(value, Mapping):
        return None
    code, message = value.get("code"), value.get("message")
    code = code[:_MAX_WORD_CHARS] if isinstance(code, str) and code else "provider_error"
    return JobError(code, message[:_MAX_MESSAGE_CHARS] if isinstance(message, str) and message else code)


def objects_of(value: object, *, of: str) -> list[Body]:
    """A list of objects.

    Args:
        value: What should be one.
        of: What it should hold, for the message.

    Raises:
        Transient: It is none.
    """
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise Transient(f"not a list of {of}")
    return value


def links_of(value: object) -> tuple[Link, ...]:
    """The result files that have a URL."""
    items = value if isinstance(value, list) else []
    return tuple(_link(item) for item in items if isinstance(item, Mapping) and isinstance(item.get("url"), str))


def _link(item: Body) -> Link:
    size = item.get("size")
    return Link(
        url=item["url"],
        content_type=_text(item.get("content_type")),
        size_bytes=size if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else None,
        sha256=_text(item.get("sha256")),
        expires_at=_text(item.get("expires_at")),
    )


def _text(value: object) -> str | None:
    return value[:_MAX_ID_CHARS] if isinstance(value, str) else None


def _json_of(answer: Answer) -> Json:
    try:
        value: Json = clean(decode_json(answer.body))  # type: ignore[assignment]  # what JSON can hold
    except Unusable:
        return None
    return value


def _is_page(answer: Answer) -> bool:
    return answer.body.lstrip()[:1] == b"<"
