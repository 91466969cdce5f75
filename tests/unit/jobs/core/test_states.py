"""The table of states is the whole rule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.errors import InvalidTransition
from jobs.core.states import OPEN, TERMINAL, TRANSITIONS, JobState, is_legal, next_state

LEGAL = {
    ("pending", "running"),
    ("pending", "succeeded"),
    ("pending", "failed"),
    ("pending", "canceled"),
    ("running", "succeeded"),
    ("running", "failed"),
    ("running", "canceled"),
}


def test_the_table_lists_exactly_the_seven_steps_of_the_contract() -> None:
    assert {(str(a), str(b)) for a, ends in TRANSITIONS.items() for b in ends} == LEGAL


def test_every_state_is_either_open_or_terminal() -> None:
    assert set(JobState) == OPEN | TERMINAL
    assert not OPEN & TERMINAL


@pytest.mark.invariant("I2")
@given(before=st.sampled_from(JobState), after=st.sampled_from(JobState))
def test_a_step_outside_the_table_is_refused(before: JobState, after: JobState) -> None:
    if (str(before), str(after)) in LEGAL:
        assert is_legal(before, after)
        assert next_state(before, after) is after
    else:
        assert not is_legal(before, after)
        with pytest.raises(InvalidTransition):
            next_state(before, after)
