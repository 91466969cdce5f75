from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.cursors import Cursor

JOB = "job_01kd7q8z2m4v6x8y0a2c4e6g8j"


@given(st.integers(0, 10**9 - 1), st.integers(0, 10**18 - 1))
def test_a_cursor_comes_back_as_it_went(sequence: int, version: int) -> None:
    cursor = Cursor(sequence, version)

    assert Cursor.from_text(cursor.to_text(JOB), JOB) == cursor


@given(st.text())
def test_whatever_a_reader_sends_is_a_cursor_or_none(text: str) -> None:
    found = Cursor.from_text(text, JOB)

    assert found is None or text.startswith(JOB[-8:])


@pytest.mark.parametrize("text", [None, "", "0", "junk", "1.1", "2c4e6g8j.-1.1", "2c4e6g8j.1.x", "2c4e6g8j.1.1\n"])
def test_junk_is_no_cursor(text: str | None) -> None:
    assert Cursor.from_text(text, JOB) is None


def test_the_cursor_of_another_job_is_none_of_this_one() -> None:
    assert Cursor.from_text(Cursor(1, 1).to_text(JOB), JOB[:-1] + "k") is None
