"""When dead letters come faster than they should."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.core.growth import GrowthRule, parse_growth


def test_so_many_within_the_window_are_too_many() -> None:
    rule = GrowthRule(count=20)

    assert not rule.is_growing(19, was=False)
    assert rule.is_growing(20, was=False)


def test_once_told_it_goes_on_until_they_come_half_as_fast() -> None:
    rule = GrowthRule(count=20)

    assert [recent for recent in (20, 15, 11, 10) if rule.is_growing(recent, was=True)] == [20, 15, 11]


def test_a_rule_of_one_ends_with_none() -> None:
    rule = GrowthRule(count=1)

    assert rule.is_growing(1, was=False)
    assert not rule.is_growing(0, was=True)


@pytest.mark.parametrize(
    ("written", "rule"),
    [
        ("20/10m", GrowthRule()),
        ("5/1h", GrowthRule(5, timedelta(hours=1))),
        (" 3 / 1h 30m ", GrowthRule(3, timedelta(minutes=90))),
    ],
)
def test_a_rule_is_a_number_and_a_time(written: str, rule: GrowthRule) -> None:
    assert parse_growth(written) == rule
    assert parse_growth(str(rule)) == rule


@pytest.mark.parametrize("written", ["", "20", "0/10m", "20/0s", "20/8d", "x/10m", "20/x", 20, None])
def test_what_is_no_rule_says_what_to_write(written: object) -> None:
    with pytest.raises(ValueError, match=r"like|between|duration"):
        parse_growth(written)
