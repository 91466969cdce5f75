"""JMESPath as mappings use it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.queries import Query

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("expression", "document", "found"),
    [
        ("result.id", {"result": {"id": "a"}}, "a"),
        ("items[0].id", {"items": []}, None),
        ("jobs[].id", {"jobs": [{"id": 1}, {}]}, [1]),
        ("omit(input, 'a', 'b')", {"input": {"a": 1, "b": 2, "c": 3}}, {"c": 3}),
        ("first(a, b, `7`)", {"b": None}, 7),
        ("first(a, b)", {"b": 0}, 0),
        ("omit(input, 'a')", {"input": [1]}, None),
        ("length(error)", {"error": 5}, None),
        ("to_number(a)", {"a": "1.5"}, 1.5),
        ("to_number(a)", {"a": "nan"}, None),
        ("{x: [to_number(a)]}", {"a": "-inf"}, None),
        ("sum(a)", {"a": [1.7e308, 1.7e308]}, None),
    ],
)
def test_a_query_finds_a_value_or_nothing(expression: str, document: object, found: object) -> None:
    assert Query.parse(expression).find(document) == found


@given(json_values)
def test_whatever_the_document_nothing_is_raised(document: object) -> None:
    for expression in ("a.b[0]", "omit(@, 'a')", "join('-', @)", "max_by(@, &a)", "sum(a[*].b)", "[?a > `1`].b | [0]"):
        Query.parse(expression).find(document)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("", "is empty"),
        ("a..b", "unexpected '.b' at character 3 of 'a..b'"),
        ("a b", "unexpected 'b' at character 3"),
        ("a[", "ends too early"),
        ("a ^ b", "unexpected '^ b' at character 3"),
        ("'open", "at character 1"),
        ("lenght(a)", "did you mean length?"),
        ("length(a, b)", "calls length() with 2 arguments; it takes 1"),
        ("omit(a)", "calls omit() with 1 arguments; it takes 2"),
        ("a[?frist(b)]", "did you mean first?"),
    ],
)
def test_a_mistake_is_named_with_its_place(expression: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        Query.parse(expression)


@pytest.mark.parametrize(
    ("expression", "roots"),
    [
        ("secret.token", {("secret", "token")}),
        ("secret", {("secret", None)}),
        ("secret.*", {("secret", None)}),
        ("secret.[a, b]", {("secret", None)}),
        ("input.a.b[?c == d] || values.x", {("input", "a"), ("values", "x")}),
        ("merge(omit(input, 'a'), {u: callback_url})", {("input", None), ("callback_url", None)}),
        ("sort_by(input.list, &secret)", {("input", "list")}),
        ("input.a | secret.b", {("input", "a")}),
        ("@", {(None, None)}),
        ("*.token", {(None, None)}),
        ("{a: @}", {(None, None)}),
    ],
)
def test_what_is_read_of_the_document_is_known_beforehand(
    expression: str, roots: set[tuple[str | None, str | None]]
) -> None:
    assert set(Query.parse(expression).roots()) == roots


@pytest.mark.parametrize(("value", "is_true"), [(None, False), (False, False), ("", False), ([], False), (0, True)])
def test_truth_is_as_jmespath_has_it(value: object, is_true: bool) -> None:
    assert Query.parse("a").is_true({"a": value}) is is_true
