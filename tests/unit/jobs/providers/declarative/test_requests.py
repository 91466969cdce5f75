"""Requests of a description, filled in: nothing a job brings leads elsewhere or adds to them."""

from __future__ import annotations

import json
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.errors import Permanent
from jobs.core.templates import MissingValue
from jobs.providers.declarative.requests import Prepared, Requests, Unsendable
from tests.fakes.descriptions import entry_of
from tests.unit.jobs.core.test_queries import json_values

URL = "https://api.acme.example/v1"
HEAD = """
[providers.acme]
adapter = "declarative"
base_url = "https://api.acme.example/v1"
secrets = { token = "s3cret", user = "u:1", password = "p" }
values = { region = "eu", limit = 3 }
"""
TAIL = """
id = "id"
[providers.acme.status]
call = "GET /x/${job.provider_job_id}"
state = "status"
states = { succeeded = ["done"] }
"""


def prepare(submit: str, *, head: str = "", **values: object) -> Prepared:
    entry = entry_of(f"{HEAD}{head}\n[providers.acme.submit]\n{submit}{TAIL}")
    assert entry.mapping is not None
    known = {"attempt": {"token": "tok", "key": "key"}, "callback_url": "https://me.example/w/p/tok", **values}
    return Requests(entry.mapping, entry.base_url).prepare(entry.mapping.submit.call, known)


def test_a_request_says_what_its_description_says() -> None:
    request = prepare(
        'call = "POST /${values.region}/jobs?limit=${values.limit}&again=a%20b"\n'
        'query = { tag = "t-${attempt.token}", on = true, none = "${input.none}", many = "${input.many}" }\n'
        'headers = { X-Key = "${attempt.key}", X-None = "${input.none}" }\n'
        'body = { prompt = "${input.prompt}", n = 2, deep = [{ url = "${callback_url}" }, "${input.none}"], '
        'text = "as ${input.prompt}!", none = "${input.none}" }',
        head='headers = { X-Version = "1", x-key = "account" }\n'
        'auth = { header = "Authorization", value = "Bearer ${secret.token}" }',
        input={"prompt": {"a": [1]}, "many": ["x", 2]},
    )

    assert request.method == "POST"
    assert request.url == f"{URL}/eu/jobs?limit=3&again=a%20b&tag=t-tok&on=true&many=x&many=2"
    assert request.headers == {
        "X-Version": "1",
        "X-Key": "key",
        "Authorization": "Bearer s3cret",
        "Content-Type": "application/json",
    }
    assert request.body is not None
    assert json.loads(request.body) == {
        "prompt": {"a": [1]},
        "n": 2,
        "deep": [{"url": "https://me.example/w/p/tok"}],
        "text": 'as {"a":[1]}!',
    }


@pytest.mark.parametrize(
    ("auth", "seen"),
    [
        ('{ user = "${secret.user}", password = "${secret.password}" }', "Basic dToxOnA="),
        ('{ header = "Authorization", value = "Key ${secret.token}" }', "Key s3cret"),
        ('{ query = "key", value = "${secret.token}" }', None),
    ],
)
def test_an_account_shows_who_it_is_in_three_ways(auth: str, seen: str | None) -> None:
    request = prepare('call = "POST /jobs"', head=f"auth = {auth}", input={})

    assert request.headers.get("Authorization") == seen
    assert request.url == f"{URL}/jobs" + ("" if seen else "?key=s3cret")
    assert "s3cret" not in repr(request) or not seen


def test_a_form_is_a_form() -> None:
    request = prepare('call = "POST /jobs"\nencoding = "form"\nbody = "${input}"', input={"a b": "c&d", "n": [1, None]})

    assert request.headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert request.body == b"a%20b=c%26d&n=1"


@given(json_values)
def test_a_body_keeps_every_type(value: object) -> None:
    request = prepare('call = "POST /jobs"\nbody = { it = "${input.it}" }', input={"it": value})

    assert request.body is not None
    assert json.loads(request.body) == ({} if value is None else {"it": value})


@given(st.text(min_size=1))
def test_a_value_in_path_and_query_cannot_lead_elsewhere(value: str) -> None:
    if any("\ud800" <= char <= "\udfff" for char in value):
        return  # replaced before it is stored
    try:
        request = prepare('call = "POST /jobs/${input.it}/go?a=${input.it}&b=1"', input={"it": value})
    except Permanent:
        assert value in (".", "..")
        return

    parts = urlsplit(request.url)
    assert (parts.scheme, parts.netloc, parts.fragment) == ("https", "api.acme.example", "")
    assert len(parts.path.split("/")) == 5
    assert dict(parse_qsl(parts.query, keep_blank_values=True)) == {"a": value, "b": "1"}
    assert request.url.isascii()
    assert request.url.isprintable()


@given(st.text(min_size=1))
def test_a_value_in_a_header_adds_no_header(value: str) -> None:
    try:
        request = prepare('call = "POST /jobs"\nheaders = { X-It = "a ${input.it}" }', input={"it": value})
    except Unsendable:
        assert not (value.isascii() and value.isprintable())
        return

    assert request.headers["X-It"] == f"a {value}".strip()
    assert "\r" not in request.headers["X-It"]
    assert "\n" not in request.headers["X-It"]


@pytest.mark.parametrize(
    "submit",
    [
        'call = "POST /jobs/${input.gone}"',
        'call = "POST /jobs?a=x${input.gone}"',
        'call = "POST /jobs"\nbody = { a = { b = ["for ${input.gone}"] } }',
        'call = "POST /jobs"\nheaders = { X-A = "for ${input.gone}" }',
    ],
)
def test_a_text_that_needs_what_is_absent_is_refused(submit: str) -> None:
    with pytest.raises(MissingValue, match=r"input\.gone is missing"):
        prepare(submit, input={"here": 1})
