"""Streams as bytes, cut wherever a network cuts."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.net.sse import Message, MessageTooLarge, Parser, messages

STREAM = (
    '\ufeff: hello\n\nevent: snapshot\ndata: {}\n\nid: 1\nevent: job.started\r\ndata: {"a":\ndata: "ü"}\r\n\r\n'
    "retry: 1000\n\ndata\n\ndata: last\rid: 2\r\r: beat\n\n"
).encode()
MESSAGES = [
    Message("snapshot", "{}", None),
    Message("job.started", '{"a":\n"ü"}', "1"),
    Message("message", "", None),
    Message("message", "last", "2"),
]


@given(st.lists(st.integers(1, len(STREAM) - 1), max_size=8))
def test_messages_are_the_same_wherever_the_stream_was_cut(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    chunks = [STREAM[start:end] for start, end in pairwise(places)]

    assert [message for message in messages(chunks) if message is not None] == MESSAGES


def test_a_message_that_is_not_complete_is_none() -> None:
    assert list(Parser().feed(b"event: job.started\ndata: {}\n")) == []


def test_a_sign_of_life_is_told_as_one() -> None:
    assert list(messages([b": beat\n", b"\n"])) == [None, None]


@given(st.binary(max_size=200))
def test_no_bytes_break_the_parser(junk: bytes) -> None:
    list(messages([junk, junk]))


@pytest.mark.parametrize("line", ["id: a\0b", "ID: 1", " id: 1"])
def test_an_id_that_is_none_is_left_out(line: str) -> None:
    (message,) = Parser().feed(f"{line}\ndata: x\n\n".encode())

    assert message.id is None


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30))
def test_what_is_kept_of_one_message_is_bounded(sizes: list[int]) -> None:
    chunks = [b"x" * size for size in (*sizes, *([40] * 10))]

    with pytest.raises(MessageTooLarge):
        list(messages(chunks, max_chars=100))


def test_messages_one_after_the_other_may_be_more_than_the_bound() -> None:
    parser = Parser(max_chars=20)

    assert [message.data for _ in range(50) for message in parser.feed(b"data: 12345678\n\n")] == ["12345678"] * 50
