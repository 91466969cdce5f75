"""Reading answers: shape decides, and nothing but the port's errors comes out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from requests.structures import CaseInsensitiveDict

from jobs.core.errors import JobsError, Transient, UnknownOutcome
from jobs.core.observations import JobError, Progress
from jobs.core.states import JobState
from jobs.net.http import Answer
from jobs.providers import answers
from jobs.providers.port import Gone, Refused

T = datetime(2026, 1, 1, tzinfo=UTC)
STATES = {"succeeded": JobState.SUCCEEDED, "processing": JobState.RUNNING}
HTML = b"<html><head><title>502 Bad Gateway</title></head></html>"


def an_answer(status: int = 200, body: bytes = b"{}", **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, CaseInsensitiveDict(named), body)


@pytest.mark.parametrize(
    "body",
    [
        HTML,
        b"",
        b'{"status":"succ',
        b'{"error":{"code":"rate_limited"}}',
        b'{"data":null}',
        b"[]",
        b"null",
        b'{"id":"p-2","status":"succeeded"}',
        b'{"id":17,"status":"succeeded"}',
        b'{"id":NaN}',
        b"[" * 5000,
        b"\xff\xfe",
    ],
)
def test_what_is_no_answer_about_the_run_is_a_delay(body: bytes) -> None:
    """F25, F26: whatever the status line says; the first 200 bytes are kept for the log."""
    with pytest.raises(Transient) as caught:
        answers.read_run(an_answer(body=body), run="p-1")

    assert "HTTP 200" in caught.value.detail
    assert len(caught.value.detail) < 300


def test_the_excerpt_of_a_page_is_its_first_200_bytes() -> None:
    with pytest.raises(Transient) as caught:
        answers.read_object(an_answer(body=b"<p>" + b"x" * 500))

    assert "<p>" + "x" * 197 + "…" in caught.value.detail
    assert "x" * 198 not in caught.value.detail


def test_a_run_is_read_with_its_texts_cleaned() -> None:
    """F21: an escaped NUL in a poll answer."""
    body = answers.read_run(an_answer(body=b'{"id":"p-1","output":{"file":"a\\u0000b"}}'), run="p-1")

    assert body["output"] == {"file": "a\ufffdb"}


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (429, {"Retry_After": "30"}, 30),
        (429, {"Retry_After": "120.5"}, 121),
        (429, {"Retry_After": "Thu, 01 Jan 2026 00:01:30 GMT"}, 90),
        (429, {"Retry_After": "-5"}, 10),
        (429, {"Retry_After": "99999999"}, 3600),
        (429, {"Retry_After": "9" * 5000}, 3600),
        (429, {}, 10),
        (503, {"Retry_After": "30"}, 30),
        (503, {}, None),
        (500, {"Retry_After": "30"}, None),
    ],
)
def test_an_overloaded_provider_says_how_long(status: int, headers: dict[str, str], expected: int | None) -> None:
    """F27"""
    asked = answers.asked_wait(an_answer(status, **headers), now=T)

    assert asked == (None if expected is None else timedelta(seconds=expected))


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (400, b'{"error":{"code":"bad","message":"no prompt"}}', Refused),
        (404, b'{"error":"no such model"}', Refused),
        (405, b"{}", Refused),
        (413, HTML, Refused),
        (422, b'{"error":{"code":"invalid","message":"x"}}', Refused),
        (404, HTML, Transient),
        (405, b"  <!doctype html>", Transient),
        (301, b"", Transient),
        (401, b"{}", Transient),
        (402, b"{}", Transient),
        (403, HTML, Transient),
        (425, b"", Transient),
        (429, b"", Transient),
        (408, b"", UnknownOutcome),
        (409, b'{"error":"same key in progress"}', UnknownOutcome),
        (500, HTML, UnknownOutcome),
        (502, b"", UnknownOutcome),
        (503, b"", UnknownOutcome),
        (504, b"", UnknownOutcome),
        (100, b"", UnknownOutcome),
        (999, b"", UnknownOutcome),
    ],
)
def test_a_submit_that_was_not_accepted_is_told_from_one_that_may_have_been(
    status: int, body: bytes, expected: type[JobsError]
) -> None:
    fault = answers.submit_fault(an_answer(status, body), now=T)

    assert type(fault) is expected


def test_a_refusal_carries_the_providers_own_words() -> None:
    body = b'{"error":{"code":"bad","message":"prompt must not be empty"}}'
    assert answers.submit_fault(an_answer(422, body), now=T).detail == "prompt must not be empty"
    assert "HTTP 400" in answers.submit_fault(an_answer(400, b"nope"), now=T).detail


def test_a_busy_provider_in_doubt_still_says_how_long() -> None:
    fault = answers.submit_fault(an_answer(503, b"", Retry_After="30"), now=T)

    assert fault.retry_after == timedelta(seconds=30)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (404, Gone),
        (410, Gone),
        (408, Transient),
        (401, Transient),
        (429, Transient),
        (500, Transient),
        (302, Transient),
    ],
)
def test_a_read_that_fails_is_a_delay_unless_the_run_is_gone(status: int, expected: type[JobsError]) -> None:
    assert type(answers.read_fault(an_answer(status, b"{}"), now=T)) is expected


@pytest.mark.parametrize(
    ("body", "state", "unknown"),
    [
        ({"status": "succeeded"}, JobState.SUCCEEDED, None),
        ({"status": "Succeeded"}, JobState.SUCCEEDED, None),
        ({"status": " succeeded "}, JobState.SUCCEEDED, None),
        ({"status": "PROCESSING\n"}, JobState.RUNNING, None),
        ({"status": "aborted"}, None, "aborted"),
        ({"status": "EXPIRED"}, None, "EXPIRED"),
        ({"status": None}, None, "no status"),
        ({}, None, "no status"),
        ({"status": "  "}, None, "no status"),
        ({"status": {"code": 3}}, None, "{'code': 3}"),
        ({"status": 0}, None, "0"),
        ({"status": "x" * 500}, None, "x" * 100),
    ],
)
def test_status_words(body: dict[str, object], state: JobState | None, unknown: str | None) -> None:
    """F24: case and outer blanks do not matter; what is no known word is unknown, never guessed."""
    assert answers.status_of(body, "status", states=STATES) == (state, unknown)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.4, Progress(0.4)),
        (0, Progress(0.0)),
        (1, Progress(1.0)),
        (1.5, None),
        (-1, None),
        ("0.4", None),
        (True, None),
    ],
)
def test_progress_is_a_fraction_or_nothing(value: object, expected: Progress | None) -> None:
    assert answers.progress_of(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"code": "oom", "message": "out of memory"}, JobError("oom", "out of memory")),
        ({"code": "oom"}, JobError("oom", "oom")),
        ({"message": "m"}, JobError("provider_error", "m")),
        ({"code": 7, "message": None}, JobError("provider_error", "provider_error")),
        ("text", JobError("provider_error", "text")),
        ("", None),
        (None, None),
        ([], None),
    ],
)
def test_errors_in_every_form(value: object, expected: JobError | None) -> None:
    assert answers.error_of(value) == expected


def test_links_without_a_url_are_left_out() -> None:
    links = answers.links_of(
        [{"url": "https://x/1.png", "size": 7, "content_type": "image/png"}, {"size": 1}, "x", None]
    )

    assert [(link.url, link.size_bytes, link.content_type) for link in links] == [("https://x/1.png", 7, "image/png")]
    assert answers.links_of({"url": "https://x"}) == ()


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 10**400, 1e308, -1, True, "1", None])
def test_a_cost_is_a_finite_amount_or_nothing(value: object) -> None:
    assert answers.cost_of(value) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(status=st.integers(100, 999), body=st.binary(max_size=60), header=st.text(max_size=12))
def test_no_answer_raises_anything_but_the_ports_errors(status: int, body: bytes, header: str) -> None:
    answer = an_answer(status, body, Retry_After=header)

    assert isinstance(answers.submit_fault(answer, now=T), JobsError)
    assert isinstance(answers.read_fault(answer, now=T), JobsError)
    try:
        answers.read_run(answer, run="p-1")
    except Transient:
        pass


@given(value=json_values)
def test_no_value_breaks_its_reader(value: object) -> None:
    answers.status_of({"status": value}, "status", states=STATES)
    for read in (answers.progress_of, answers.cost_of, answers.error_of, answers.links_of, answers.id_of):
        read(value)


@pytest.mark.parametrize(
    ("status", "body", "word"),
    [
        (502, b"<html>", answers.AWAY),
        (503, b"", answers.AWAY),
        (504, b"", answers.AWAY),
        (500, b"{}", None),
        (408, b"", None),
        (401, b"{}", answers.DECLINED),
        (403, b"{}", answers.DECLINED),
        (405, b"<html>who?</html>", None),
        (302, b"", None),
    ],
)
def test_faults_say_whether_anybody_was_there(status: int, body: bytes, word: str | None) -> None:
    """F25: a gateway's word is not the provider's."""
    for fault in (answers.read_fault(an_answer(status, body), now=T), answers.delay(an_answer(status, body), now=T)):
        assert (fault.slug if fault.slug in (answers.AWAY, answers.DECLINED) else None) == word
