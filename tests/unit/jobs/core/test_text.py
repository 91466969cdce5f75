"""JSON and text from outside: read strictly, stored clean, compared in one form."""

from __future__ import annotations

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.errors import Unusable
from jobs.core.text import canonical_json, clean, decode_json, excerpt, fingerprint
from tests.vectors import B1, B2, B3, B4, B5

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**300), 10**300),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=())),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=())), inner),
    max_leaves=20,
)


@pytest.mark.parametrize("vector", [B1, B2, B5], ids=lambda vector: vector.name)
def test_json_is_read(vector: object) -> None:
    body = vector.body  # type: ignore[attr-defined]

    assert decode_json(body) == json.loads(body)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (B3.body, "not JSON"),
        (B4.body, "not JSON"),
        (b'{"status":"succ', "not JSON"),
        (b"<html><head><title>502 Bad Gateway</title>", "not JSON"),
        (b'{"a":1} {"b":2}', "not JSON"),
        (b'"bad\x00byte"', "not JSON"),
        (b'{"a":1}\x00', "not JSON"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b'{"a":"\xff"}', "not UTF-8"),
        (b'"\xed\xa0\x80"', "not UTF-8"),
        ('{"a":1}'.encode("utf-16"), "not UTF-8"),
        (b'{"a":NaN}', "NaN is not JSON"),
        (b"[Infinity]", "Infinity is not JSON"),
        (b"[-Infinity]", "-Infinity is not JSON"),
        (b"[1e999]", "beyond the range"),
        (b"9" * 5000, "beyond the range"),
        (b"-" + b"9" * 400, "beyond the range"),
        (b"[" * 65 + b"]" * 65, "nested deeper than 64"),
        (b"[" * 1_000_000, "nested deeper than 64"),
        (b'{"a":' * 100_000, "nested deeper than 64"),
    ],
    ids=lambda raw: repr(raw)[:30],
)
def test_anything_else_is_unusable_for_a_reason_that_quotes_nothing(raw: bytes, reason: str) -> None:
    with pytest.raises(Unusable, match=reason) as refused:
        decode_json(raw)

    assert "Gateway" not in refused.value.reason
    assert len(refused.value.reason) < 120


def test_large_numbers_within_a_double_are_exact() -> None:
    digits = "9" * 300

    assert decode_json(digits.encode()) == int(digits)
    assert decode_json(b"1" + b"0" * 308) == 10**308
    assert decode_json(b"1." + b"9" * 5000) == 2.0


def test_nesting_up_to_the_limit_is_read_whatever_stands_in_strings() -> None:
    deep = b"[" * 64 + b"]" * 64
    brackets = json.dumps({"a": "[{" * 500, "b\\": '"[' * 500, "c": [[]] * 100}).encode()

    assert decode_json(deep)
    assert decode_json(brackets) == json.loads(brackets)


def test_an_endless_string_of_escapes_is_refused_in_linear_time() -> None:
    """An unclosed string must not be searched again from each quote in it."""
    with pytest.raises(Unusable):
        decode_json(b'"' + b'\\"' * 500_000 + b"[" * 100)


def test_the_last_of_equal_keys_wins() -> None:
    assert decode_json(b'{"status":"failed","status":"succeeded"}') == {"status": "succeeded"}


@given(st.binary(max_size=200) | st.text('[]{}",:\\u0019.eE-NaInfity tru', max_size=80).map(str.encode))
def test_any_bytes_are_json_or_unusable(raw: bytes) -> None:
    try:
        value = decode_json(raw, max_depth=8)
    except Unusable:
        return

    assert decode_json(canonical_json(value)) == value


def test_reading_deep_json_from_a_deep_stack_is_unusable_at_worst() -> None:
    raw = b"[" * 60 + b"]" * 60

    def descend(levels: int) -> None:
        if levels:
            descend(levels - 1)
        else:
            decode_json(raw)

    try:
        descend(sys.getrecursionlimit() - 120)
    except (Unusable, RecursionError):  # the stack may end in our own frames too
        return


def test_a_nul_escape_is_cleaned_and_the_rest_kept() -> None:
    """F21."""
    value = decode_json(B5.body)

    assert clean(value) == {"id": "evt_5", "job": "p-123", "status": "failed", "error": "bad\ufffdbyte"}


def test_keys_nested_lists_and_lone_surrogates_are_cleaned_too() -> None:
    """F21."""
    value = json.loads(r'{"k\u0000":[{"\ud800":"a\udfffb"},["\u0000"]],"pair":"\ud83d\ude31","n":1}')

    assert clean(value) == {"k\ufffd": [{"\ufffd": "a\ufffdb"}, ["\ufffd"]], "pair": "\U0001f631", "n": 1}


def test_what_was_given_is_not_changed() -> None:
    value = {"a": ["x\x00"]}

    assert clean(value) == {"a": ["x\ufffd"]}
    assert value == {"a": ["x\x00"]}


def test_cleaning_knows_no_depth() -> None:
    value: object = "\x00"
    for _ in range(50_000):
        value = [value]

    cleaned = clean(value)

    while isinstance(cleaned, list):
        (cleaned,) = cleaned
    assert cleaned == "\ufffd"


@given(values)
def test_a_cleaned_value_can_be_stored_and_is_otherwise_the_same(value: object) -> None:
    """F21."""
    cleaned = clean(value)

    stored = json.dumps(cleaned, ensure_ascii=False)
    stored.encode()
    assert "\\u0000" not in stored
    assert clean(cleaned) == cleaned
    assert json.dumps(cleaned).count('"') == json.dumps(clean(json.loads(json.dumps(value)))).count('"')


def test_the_order_of_keys_and_blanks_do_not_matter_to_a_fingerprint() -> None:
    """F31."""
    one = decode_json(b'{"a":1,"b":{"c":[1,2],"d":"caf\\u00e9"}}')
    two = decode_json('{ "b": {"d":"café",\n"c":[1, 2]}, "a": 1 }'.encode())

    assert canonical_json(one) == b'{"a":1,"b":{"c":[1,2],"d":"caf\\u00e9"}}'
    assert fingerprint(one) == fingerprint(two)


def test_different_values_have_different_fingerprints() -> None:
    """F31."""
    different = [1, 1.0, True, "1", None, [], {}, [1, 2], [2, 1], {"a": None}, "", "\ud800", "\ufffd"]

    assert len({fingerprint(value) for value in different}) == len(different)


@given(values, values)
def test_fingerprints_are_equal_exactly_when_the_canonical_form_is(one: object, two: object) -> None:
    assert (fingerprint(one) == fingerprint(two)) == (canonical_json(one) == canonical_json(two))
    assert fingerprint(one) == fingerprint(json.loads(json.dumps(one)))


def test_what_json_cannot_say_has_no_canonical_form() -> None:
    deep: object = 1
    for _ in range(100_000):
        deep = [deep]

    for value in (float("nan"), float("inf"), deep):
        with pytest.raises(Unusable):
            canonical_json(value)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"<html>\n<title>502</title>\x00", "<html> <title>502</title>"),
        (b"a" * 300, "a" * 200 + "…"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"", ""),
        ("é\u202e\x1b[31m".encode(), "é  [31m"),
    ],
)
def test_an_excerpt_is_short_and_printable(raw: bytes, text: str) -> None:
    """F26: the first 200 bytes, safe for a log and a terminal."""
    assert excerpt(raw) == text


@given(st.binary(max_size=400))
def test_an_excerpt_never_breaks_a_line(raw: bytes) -> None:
    assert excerpt(raw, limit=50).isprintable()
    assert len(excerpt(raw, limit=50)) <= 51
