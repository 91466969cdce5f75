"""Keys of a TOML file, found again with their lines."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.config.lines import key_lines, with_lines

TEXT = '''# a comment with [brackets] and = signs
top = 1
[a.b] # head
"quo.ted" = "x # no comment"
'lit' = '[no table]'
long = """
[not.a.table]
key = "no key"
"""
list = [
  "]", # [
  { inner = 1 },
]
dotted . key = { x = { y = 1 } }

[[many]]
name = 1
'''


def test_every_key_has_its_line() -> None:
    assert key_lines(TEXT) == {
        ("top",): 2,
        ("a", "b"): 3,
        ("a", "b", "quo.ted"): 4,
        ("a", "b", "lit"): 5,
        ("a", "b", "long"): 6,
        ("a", "b", "list"): 10,
        ("a", "b", "dotted", "key"): 14,
        ("many",): 16,
        ("many", "name"): 17,
    }


@pytest.mark.parametrize(
    ("fault", "line"),
    [
        ("a.b.list[1] is wrong", 10),
        ("a.b.dotted.key.x.y: wrong", 14),
        ("a.b.missing is missing", 3),
        ("a.b must hold it", 3),
        ("top is unknown", 2),
    ],
)
def test_a_fault_is_placed_by_the_longest_key_it_begins_with(fault: str, line: int) -> None:
    assert with_lines([fault], text=TEXT, name="f.toml") == [f"f.toml:{line}: {fault}"]


def test_a_fault_without_a_key_of_the_file_keeps_the_name_of_the_file() -> None:
    assert with_lines(["elsewhere is wrong"], text=TEXT, name="f.toml") == ["f.toml: elsewhere is wrong"]


def test_a_setting_of_the_signature_is_found_in_its_section() -> None:
    text = '[providers.a]\n[providers.a.webhook]\nheader = "x"\n'

    assert with_lines(["providers.a.webhook_header: no"], text=text, name="f") == [
        "f:3: providers.a.webhook_header: no"
    ]


keys = st.from_regex(r"[a-z]{1,3}", fullmatch=True)
values = st.sampled_from(['"x"', "'y'", "3", '"""\n[t]\nk = 1\n"""', "[1,\n2]", '{ k = "}" }', "'''\n'''", '"\\""'])


@given(st.dictionaries(keys, st.dictionaries(keys, values, max_size=4), max_size=4))
def test_the_same_keys_are_found_as_by_the_parser(tables: dict[str, dict[str, str]]) -> None:
    text = "\n".join(
        f"[{table}]\n" + "".join(f"{key} = {value} # c\n" for key, value in entries.items())
        for table, entries in tables.items()
    )

    found = key_lines(text)

    assert set(found) == set(_paths(tomllib.loads(text)))
    for path, line in found.items():
        assert text.splitlines()[line - 1].lstrip("[").startswith(path[-1])


def _paths(tables: dict[str, dict[str, object]]) -> Iterator[tuple[str, ...]]:
    for table, entries in tables.items():
        yield (table,)
        yield from ((table, key) for key in entries)
