"""Whether a provider's webhooks can be relied on."""

from __future__ import annotations

import pytest

from jobs.core.standing import Ends, error_rate, heal_s, is_degraded, poll_share


def ends(*, webhook: int = 0, poll: int = 0) -> Ends:
    return [["webhook", "succeeded", 0.0]] * webhook + [["poll", "succeeded", 4.0]] * poll


@pytest.mark.parametrize(
    ("webhook", "poll", "was", "is_now"),
    [
        (0, 9, False, False),  # too few to say
        (0, 10, False, True),
        (5, 5, False, True),
        (11, 9, False, False),
        (11, 9, True, True),  # not yet as good as it should be
        (15, 5, True, False),
        (9, 0, True, True),  # too few to say
    ],
)
def test_half_lost_is_degraded_and_a_quarter_lost_is_recovered(
    webhook: int, poll: int, was: bool, is_now: bool
) -> None:
    assert is_degraded(ends(webhook=webhook, poll=poll), was=was) is is_now


def test_only_the_newest_are_judged() -> None:
    assert is_degraded([*ends(webhook=30), *ends(poll=20)], was=False)
    assert not is_degraded([*ends(poll=30), *ends(webhook=20)], was=True)


def test_shares_and_times_of_nothing_are_unknown() -> None:
    assert (poll_share([]), error_rate([]), heal_s([]), heal_s(ends(webhook=3))) == (None, None, None, None)


def test_shares_and_times() -> None:
    recent = [["poll", "failed", 2.0], ["webhook", "succeeded", 0.0], ["poll", "succeeded", 8.0]]

    assert (poll_share(recent), error_rate(recent), heal_s(recent)) == (0.667, 0.333, (5.0, 8.0))
