"""Key sets as senders publish them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.errors import Unusable
from jobs.core.signatures.key_sets import MAX_KEYS, parse_key_set
from jobs.core.signatures.scheme import KeyKind
from tests.vectors import FAL_PUBLIC

KEY = {"kty": "OKP", "crv": "Ed25519", "x": FAL_PUBLIC, "kid": "1"}


def parsed(*keys: Any) -> int:
    return len(parse_key_set(json.dumps({"keys": list(keys)}).encode()))


def test_an_ed25519_key_is_read() -> None:
    (key,) = parse_key_set(json.dumps({"keys": [KEY]}).encode())

    assert key.kind is KeyKind.PUBLIC
    assert key.key.hex().startswith("d52880e28f61caa4")


@pytest.mark.parametrize(
    "other",
    [
        {**KEY, "kty": "RSA"},
        {**KEY, "crv": "X25519"},
        {**KEY, "use": "enc"},
        {**KEY, "x": "c2hvcnQ"},
        {**KEY, "x": None},
        {"kty": "OKP", "crv": "Ed25519"},
        None,
        "key",
    ],
)
def test_a_key_of_another_kind_is_left_out(other: Any) -> None:
    assert parsed(other, KEY) == 1
    with pytest.raises(Unusable):
        parsed(other)


@pytest.mark.parametrize("raw", [b"", b"<html>", b"[]", b"{}", b'{"keys":{}}', b'{"keys":[]}', b"\xff"])
def test_what_is_no_key_set_is_unusable(raw: bytes) -> None:
    with pytest.raises(Unusable):
        parse_key_set(raw)


def test_only_so_many_keys_are_tried_for_each_request() -> None:
    assert parsed(*[KEY] * 50) == MAX_KEYS


@given(st.binary(max_size=200))
def test_any_bytes_are_a_key_set_or_unusable(raw: bytes) -> None:
    with pytest.raises(Unusable):
        parse_key_set(raw)
