"""A body is read whole or not at all, and never larger than its limit."""

from __future__ import annotations

import gzip
import io
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.errors import BadRequest, TooLarge, UnsupportedCoding, Unusable
from webhooks.incoming.body import check_coding, decode_body, read_body

GZIP = {"content-encoding": "gzip"}


class Dripping(io.RawIOBase):
    """Gives one byte at a time."""

    def __init__(self, content: bytes) -> None:
        self._rest = io.BytesIO(content)

    def read(self, size: int = -1, /) -> bytes:
        return self._rest.read(min(size, 1))


@given(content=st.binary(max_size=100), limit=st.integers(1, 100), announced=st.booleans())
def test_what_is_read_is_what_was_sent_or_too_large(content: bytes, limit: int, announced: bool) -> None:
    length = len(content) if announced else None
    if len(content) > limit:
        with pytest.raises(TooLarge):
            read_body(io.BytesIO(content), length=length, limit_bytes=limit)
    else:
        assert read_body(Dripping(content), length=length, limit_bytes=limit) == content


def test_no_more_than_the_announced_length_is_read() -> None:
    """What follows on the connection is the next request."""
    stream = io.BytesIO(b"this" + b"next")

    assert read_body(stream, length=4, limit_bytes=100) == b"this"
    assert stream.read() == b"next"


def test_a_lost_connection_is_no_body() -> None:
    class Lost(io.RawIOBase):
        def read(self, _size: int = -1, /) -> bytes:
            raise ConnectionResetError

    with pytest.raises(BadRequest):
        read_body(Lost(), length=4, limit_bytes=100)


@given(content=st.binary(max_size=3000), members=st.integers(1, 3))
def test_gzip_unfolds_to_what_was_packed(content: bytes, members: int) -> None:
    packed = gzip.compress(content) * members

    assert decode_body(packed, GZIP, limit_bytes=10_000) == content * members


@given(content=st.binary(min_size=1, max_size=3000), limit=st.integers(1, 3000))
def test_gzip_beyond_the_limit_is_too_large_in_one_member_or_many(content: bytes, limit: int) -> None:
    parts = b"".join(gzip.compress(bytes([byte])) for byte in content)
    for packed in (gzip.compress(content), parts):
        if len(content) > limit:
            with pytest.raises(TooLarge):
                decode_body(packed, GZIP, limit_bytes=limit)
        else:
            assert decode_body(packed, GZIP, limit_bytes=limit) == content


@given(packed=st.binary(max_size=200))
def test_junk_called_gzip_is_unusable(packed: bytes) -> None:
    try:
        assert len(decode_body(packed, GZIP, limit_bytes=1000)) <= 1000
    except (Unusable, TooLarge):
        pass


@pytest.mark.parametrize("cut", [1, 5, 8, 12])
def test_gzip_cut_off_is_unusable(cut: int) -> None:
    with pytest.raises(Unusable):
        decode_body(gzip.compress(b"hello hello hello")[:-cut], GZIP, limit_bytes=1000)


def test_a_bare_deflate_stream_is_not_gzip() -> None:
    with pytest.raises(Unusable):
        decode_body(zlib.compress(b"hello"), GZIP, limit_bytes=1000)


@pytest.mark.parametrize("coding", ["", "identity", " GZIP ", "x-gzip"])
def test_plain_and_gzip_are_taken(coding: str) -> None:
    check_coding({"content-encoding": coding})


@pytest.mark.parametrize("coding", ["gzip, gzip", "br", "deflate", "gzip,identity", "gz\u0131p"])
def test_anything_else_is_not(coding: str) -> None:
    with pytest.raises(UnsupportedCoding):
        check_coding({"content-encoding": coding})
