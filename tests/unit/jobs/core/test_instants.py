from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core import instants

AWARE = st.datetimes(timezones=st.just(UTC))


@given(AWARE)
def test_an_instant_survives_its_text(at: datetime) -> None:
    assert instants.from_text(instants.to_text(at)) == at


@given(AWARE, AWARE)
def test_texts_sort_as_their_instants_do(one: datetime, other: datetime) -> None:
    assert (instants.to_text(one) < instants.to_text(other)) == (one < other)


def test_text_is_utc_whatever_the_zone() -> None:
    at = datetime(2026, 1, 1, 1, 30, tzinfo=timezone(timedelta(hours=2)))

    assert instants.to_text(at) == "2025-12-31T23:30:00.000000Z"


def test_a_naive_instant_has_no_text() -> None:
    with pytest.raises(ValueError, match="without a zone"):
        instants.to_text(datetime(2026, 1, 1))  # noqa: DTZ001 - the point of the test


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-01-01T00:00:00", "2026-13-01T00:00:00Z", "0001-01-01T00:00:00+23:00"]
)
def test_text_that_is_no_instant_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="RFC 3339"):
        instants.from_text(text)
