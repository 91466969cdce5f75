"""Requests as servers hand them over, and answers as they go out."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.errors import BadRequest, Expired, Missing, NotFound, Unavailable
from webhooks.incoming.exchange import acknowledgement, problem_of, request_of, split_path


def environ(**values: Any) -> dict[str, Any]:
    return {"REQUEST_METHOD": "POST", "PATH_INFO": "/webhooks/a", "wsgi.input": io.BytesIO(), **values}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/webhooks/a", ("a", None)),
        ("/webhooks/a/", ("a", None)),
        ("/webhooks/a/t", ("a", "t")),
        ("/webhooks/a/t/", ("a", "t")),
        ("/webhooks/", None),
        ("/webhooks//", None),
        ("/webhooks//t", None),
        ("/webhooks/a//", None),
        ("/webhooks/a/t/x", None),
        ("/webhook/a", None),
        ("", None),
    ],
)
def test_a_path_names_a_provider_and_perhaps_a_token(path: str, expected: object) -> None:
    assert split_path(path) == expected


@given(path=st.text(max_size=300))
def test_any_path_is_split_or_refused(path: str) -> None:
    named = split_path("/webhooks/" + path)

    assert named is None or (named[0] and len(named[1] or "") <= 255)


def test_headers_have_lower_case_names_and_their_bytes() -> None:
    request = request_of(environ(HTTP_X_SIGNATURE="sha256=\xe9\xff", CONTENT_TYPE="text/x", CONTENT_LENGTH="3"))

    assert request.headers == {"x-signature": "sha256=\xe9\xff", "content-type": "text/x", "content-length": "3"}
    assert request.length == 3


@pytest.mark.parametrize("text", ["-1", "+1", "1_0", " 1", "1.0", "0x1", "\u0661", "\xb2"])
def test_a_length_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(BadRequest):
        request_of(environ(CONTENT_LENGTH=text))


def test_an_absurd_length_is_a_number_all_the_same() -> None:
    length = request_of(environ(CONTENT_LENGTH="9" * 5000)).length

    assert length is not None
    assert length > 10**17


def test_without_a_length_the_body_ends_with_its_stream_only_where_the_server_says_so() -> None:
    assert request_of(environ()).length == 0
    assert request_of(environ(**{"wsgi.input_terminated": True})).length is None
    assert request_of(environ(HTTP_TRANSFER_ENCODING="chunked")).length is None


def test_signature_errors_cannot_be_told_apart() -> None:
    assert problem_of(Missing()) == problem_of(Expired("it was 301 s old"))


def test_what_is_our_fault_is_not_explained() -> None:
    reply = problem_of(Unavailable("psycopg could not reach db.internal", retry_after=timedelta(seconds=1.2)))

    assert (reply.status, reply.headers["Retry-After"]) == (503, "2")
    assert b"db.internal" not in reply.body


def test_what_is_the_senders_fault_is_explained() -> None:
    document = json.loads(problem_of(NotFound("no such provider")).body)

    assert document == {
        "type": "urn:homing:problem:not-found",
        "title": "There is no such thing here",
        "status": 404,
        "detail": "no such provider",
    }


def test_an_acknowledgement_names_the_row() -> None:
    assert json.loads(acknowledgement("accepted", "evt_1").body) == {"status": "accepted", "event": "evt_1"}
