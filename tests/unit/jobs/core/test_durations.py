"""Durations, sizes and rates as people write them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.durations import format_duration, parse_duration, parse_rate, parse_size


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("90s", timedelta(seconds=90)),
        ("1.5h", timedelta(minutes=90)),
        ("250ms", timedelta(milliseconds=250)),
        ("2d", timedelta(days=2)),
        ("47m", timedelta(minutes=47)),
        ("0.1s", timedelta(milliseconds=100)),
        ("1h 30m", timedelta(minutes=90)),
        ("1h30m5s", timedelta(minutes=90, seconds=5)),
        (" 5 s ", timedelta(seconds=5)),
        ("0s", timedelta(0)),
        (timedelta(seconds=3), timedelta(seconds=3)),
    ],
)
def test_a_duration_is_read(text: object, duration: timedelta) -> None:
    assert parse_duration(text) == duration


@pytest.mark.parametrize(
    "text",
    [
        *["", "90", "s", "-5s", "5 sec", "5S", "1,5h", "1e3s", "5s!", "inf", "\u0665s", ".5s", "5.s", "9" * 5000 + "s"],
        *["1h " * 100, 90, 1.5, None, True, timedelta(seconds=-1)],
    ],
)
def test_anything_else_is_refused_with_what_to_write(text: object) -> None:
    with pytest.raises(ValueError, match=r"like 90s|cannot be negative") as refused:
        parse_duration(text)

    assert len(str(refused.value)) < 150


def test_a_duration_too_long_to_count_is_refused() -> None:
    with pytest.raises(ValueError, match="too long"):
        parse_duration("9999999999999d")


@given(st.timedeltas(timedelta(0), timedelta(days=10_000)))
def test_a_formatted_duration_reads_back(duration: timedelta) -> None:
    back = parse_duration(format_duration(duration))

    assert abs(back - duration) <= timedelta(microseconds=500)


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(seconds=90), "1m 30s"),
        (timedelta(milliseconds=250), "250ms"),
        (timedelta(0), "0s"),
        (timedelta(days=1, hours=1), "1d 1h"),
        (timedelta(seconds=-5), "-5s"),
    ],
)
def test_a_duration_is_written_for_people(duration: timedelta, text: str) -> None:
    assert format_duration(duration) == text


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("5MiB", 5 * 2**20),
        ("500MB", 500 * 10**6),
        ("1.5 GB", 1_500_000_000),
        ("2KiB", 2048),
        ("2kb", 2000),
        ("10", 10),
        ("10 B", 10),
        (4096, 4096),
    ],
)
def test_a_size_is_read(text: object, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "MB", "-5MB", "5 apples", "5M", -1, 1.5, True, None, "9" * 5000])
def test_any_other_size_is_refused_with_what_to_write(text: object) -> None:
    with pytest.raises(ValueError, match="is not a size; write a number with B, KB, KiB"):
        parse_size(text)


@pytest.mark.parametrize(("text", "rate"), [("10/s", 10.0), ("600/m", 10.0), ("1.5 / s", 1.5), ("86400/d", 1.0)])
def test_a_rate_is_read_per_second(text: str, rate: float) -> None:
    assert parse_rate(text) == rate


def test_the_slowest_rate_is_one_a_day_itself() -> None:
    assert parse_rate("1/d") == 1 / 86_400


@pytest.mark.parametrize("text", ["", "10", "10/ms", "0/s", "-1/s", "/s", 10, None])
def test_any_other_rate_is_refused_with_what_to_write(text: object) -> None:
    with pytest.raises(ValueError, match="like 10/s"):
        parse_rate(text)


@given(st.text(max_size=60))
def test_no_text_breaks_a_reader(text: str) -> None:
    for read in (parse_duration, parse_size, parse_rate):
        try:
            read(text)
        except ValueError:
            continue


@pytest.mark.parametrize("text", ["0.9/d", "0.000000000000000001/d"])
def test_a_rate_that_would_never_send_is_refused_in_favour_of_a_pause(text: str) -> None:
    with pytest.raises(ValueError, match="pause it"):
        parse_rate(text)
