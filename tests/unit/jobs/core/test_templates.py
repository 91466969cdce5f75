"""`${…}`: types kept, texts written, paths never left."""

from __future__ import annotations

import re
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.templates import MissingValue, Template, write_segment
from tests.unit.jobs.core.test_queries import json_values

VALUES = {"input": {"prompt": "a pigeon", "n": 3, "on": False, "size": [1, 2], "none": None}, "secret": {"t": "s3"}}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${input.prompt}", "a pigeon"),
        ("${input.n}", 3),
        ("${input.on}", False),
        ("${input.size}", [1, 2]),
        ("${ input.prompt }", "a pigeon"),
        ("${input.missing}", None),
        ("${input.none}", None),
        ("${input.missing || 'x}y'}", "x}y"),
        ("${{a: input.n, b: {c: `1`}}}", {"a": 3, "b": {"c": 1}}),
        ("Bearer ${secret.t}", "Bearer s3"),
        ("${input.n}${input.on}${input.size}", "3false[1,2]"),
        ("n=${input.n}", "n=3"),
        ("$${input.n} costs $5", "${input.n} costs $5"),
        ("", ""),
        ("plain", "plain"),
    ],
)
def test_a_hole_alone_keeps_its_type_and_in_a_text_is_written(text: str, value: object) -> None:
    assert Template.parse(text).value(VALUES) == value


@given(json_values)
def test_one_hole_is_its_value_whatever_that_is(value: object) -> None:
    assert Template.parse("${input}").value({"input": value}) == value


@given(st.text(), st.text())
def test_a_value_is_never_read_as_a_template(prompt: str, around: str) -> None:
    around = around.replace("$", "")

    assert Template.parse(f"{around}${{input.p}}{around}").write({"input": {"p": prompt}}) == around + prompt + around


@pytest.mark.parametrize("text", ["to ${input.missing}", "to ${input.none}"])
def test_a_text_is_not_written_without_what_it_needs(text: str) -> None:
    with pytest.raises(MissingValue, match="input"):
        Template.parse(text).value(VALUES)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("${}", "holds an empty ${}"),
        ("a ${input.p", "opens ${ at character 3 and never closes it"),
        ("${input..p}", "holds ${input..p}, which is not JMESPath"),
        ("${'}", "never closes"),
    ],
)
def test_a_mistake_is_named(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        Template.parse(text)


@given(st.text(min_size=1))
def test_a_value_stays_inside_its_segment_of_a_path(value: str) -> None:
    written = Template.parse("/jobs/${input}/x").write({"input": value}, write_segment)

    before, middle, after = written.removeprefix("/").split("/")
    assert (before, after) == ("jobs", "x")
    assert written.isascii()
    assert not set("?#\\ \r\n\t@:") & set(middle)
    assert unquote(middle, errors="surrogatepass").replace("?", "") == "".join(
        char for char in value if char != "?" and not "\ud800" <= char <= "\udfff"
    )


def test_slashes_stay_only_where_the_mapping_says_so() -> None:
    values = {"input": "a b/c"}

    assert Template.parse("/${+input}").write(values, write_segment) == "/a%20b/c"
    assert Template.parse("/${input}").write(values, write_segment) == "/a%20b%2Fc"
    with pytest.raises(MissingValue):
        Template.parse("/${+input}").write({"input": "/evil.example"}, write_segment)
