"""The life of a job, as a table.

A job moves ``pending → running → succeeded | failed | canceled``; ``pending`` may go straight to any end. Nothing
else is legal, and an end absorbs everything that comes after it. :data:`TRANSITIONS` is the whole rule: code asks
it, ``docs/lifecycle.md`` draws it, the database repeats it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from jobs.core.errors import InvalidTransition


class JobState(StrEnum):
    """Where a job is."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"


TERMINAL = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELED})
OPEN = frozenset({JobState.PENDING, JobState.RUNNING})

TRANSITIONS: Mapping[JobState, frozenset[JobState]] = {
    JobState.PENDING: frozenset({JobState.RUNNING}) | TERMINAL,
    JobState.RUNNING: TERMINAL,
    JobState.SUCCEEDED: frozenset(),
    JobState.FAILED: frozenset(),
    JobState.CANCELED: frozenset(),
}


def is_terminal(state: JobState) -> bool:
    """Whether a job in this state has ended."""
    return state in TERMINAL


def is_legal(before: JobState, after: JobState) -> bool:
    """Whether the table allows this step."""
    return after in TRANSITIONS[before]


def next_state(before: JobState, after: JobState) -> JobState:
    """The state after a step.

    Raises:
        InvalidTransition: The table does not list the step.
    """
    if not is_legal(before, after):
        raise InvalidTransition(f"a job cannot go from {before} to {after}")
    return after
