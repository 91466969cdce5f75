"""What may be done next about a submit: the rule against paying twice, case by case and over everything."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.providers.port import Capabilities, KeyUse
from jobs.services.submitting.plan import MAX_ASKS, Sent, SubmitStep, next_step
from tests.fakes.provider import (
    NO_KEYS,
    NO_KEYS_WITH_SEARCH,
    REJECT,
    REJECT_WITH_SEARCH,
    REPLAY,
    WITH_SEARCH,
)

T = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def step(capabilities: Capabilities, *, after: timedelta = HOUR, **sent: object) -> SubmitStep:
    """The next step, so long after the first request may have left."""
    return next_step(Sent(sending_at=T, **sent), capabilities, now=T + after)  # type: ignore[arg-type]


@pytest.mark.parametrize("capabilities", [REPLAY, WITH_SEARCH, REJECT, REJECT_WITH_SEARCH, NO_KEYS])
def test_what_never_left_is_sent(capabilities: Capabilities) -> None:
    assert next_step(Sent(sending_at=None), capabilities, now=T) is SubmitStep.SEND


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        pytest.param(REPLAY, SubmitStep.RESEND, id="the provider replays the key"),
        pytest.param(WITH_SEARCH, SubmitStep.RESEND, id="replaying beats searching"),
        pytest.param(REJECT, SubmitStep.RESEND, id="the provider refuses a used key, and says so"),
        pytest.param(REJECT_WITH_SEARCH, SubmitStep.ASK, id="a refused key names no run: look first"),
        pytest.param(NO_KEYS_WITH_SEARCH, SubmitStep.ASK, id="no keys: look"),
        pytest.param(NO_KEYS, SubmitStep.WAIT, id="no keys, no list: a person"),
    ],
)
def test_what_may_have_arrived(capabilities: Capabilities, expected: SubmitStep) -> None:
    """F30"""
    assert step(capabilities) is expected


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        pytest.param(timedelta(hours=23, minutes=58), SubmitStep.RESEND, id="well within"),
        pytest.param(timedelta(hours=23, minutes=59), SubmitStep.WAIT, id="a minute before its end"),
        pytest.param(timedelta(hours=25), SubmitStep.WAIT, id="after it"),
    ],
)
def test_a_key_counts_within_its_window_only(after: timedelta, expected: SubmitStep) -> None:
    assert step(REPLAY, after=after) is expected


def test_a_list_that_stays_empty_leads_to_a_resend_only_where_a_used_key_is_refused() -> None:
    assert step(REJECT_WITH_SEARCH, asks=MAX_ASKS) is SubmitStep.RESEND
    assert step(NO_KEYS_WITH_SEARCH, asks=10_000) is SubmitStep.ASK


def test_a_key_known_to_be_taken_is_not_tried_again() -> None:
    assert step(REJECT, key_taken=True) is SubmitStep.WAIT
    assert step(REJECT_WITH_SEARCH, key_taken=True, asks=10_000) is SubmitStep.ASK


def test_a_job_that_shall_end_is_looked_for_before_it_is_sent_again() -> None:
    assert step(WITH_SEARCH, wants_end=True) is SubmitStep.ASK
    assert step(REPLAY, wants_end=True) is SubmitStep.RESEND


@pytest.mark.invariant("I13")
@given(
    keys=st.sampled_from(KeyUse),
    window=st.none() | st.timedeltas(min_value=timedelta(seconds=1), max_value=timedelta(days=400)),
    search=st.booleans(),
    asks=st.integers(0, 100),
    key_taken=st.booleans(),
    wants_end=st.booleans(),
    after=st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=400)),
)
def test_a_second_request_leaves_only_under_a_key_the_provider_still_recognises(
    keys: KeyUse,
    window: timedelta | None,
    search: bool,
    asks: int,
    key_taken: bool,
    wants_end: bool,
    after: timedelta,
) -> None:
    capabilities = Capabilities(keys=keys, key_window=window, search=search)

    chosen = step(capabilities, after=after, asks=asks, key_taken=key_taken, wants_end=wants_end)

    assert chosen is not SubmitStep.SEND
    if chosen is SubmitStep.RESEND:
        assert keys is not KeyUse.NONE
        assert window is None or after < window
        assert not key_taken
    elif chosen is SubmitStep.ASK:
        assert search
