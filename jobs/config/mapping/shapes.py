"""How a mapping reads a run: its status word, and what comes with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from jobs.config.faults import suggestion
from jobs.config.mapping.model import RunShape, States
from jobs.config.mapping.table import Table
from jobs.core.queries import Query
from jobs.core.states import JobState

_QUERIES = (
    "state", "failed_if", "error", "error_code", "output", "progress", "progress_message", "cost", "reference",
)  # fmt: skip
_EXAMPLE = 'states = { running = ["processing"], succeeded = ["done"], failed = ["error"] }'


def read_shape(table: Table, *, urls: Query | None, preset: RunShape | None = None) -> RunShape | None:
    """Read the keys that say how a run is read.

    Args:
        table: the section.
        urls: where the result files are.
        preset: what holds where the section is silent; none: `state` and `states` must be there.
    """
    found = {name: table.query(name) for name in _QUERIES}
    most = table.read("progress_max", _positive)
    states = _read_states(table) if preset is None or "states" in table else preset.states
    if preset is None and not table.need("state", what="a JMESPath expression that finds the status word"):
        return None
    said: dict[str, Any] = {name: query for name, query in found.items() if query is not None}
    if preset is not None:
        return replace(preset, **said, states=states, progress_max=most or preset.progress_max)
    if found["state"] is None:
        return None
    return RunShape(**said, states=states, progress_max=most or 1.0, urls=urls)


def within(run: Query, shape: RunShape) -> RunShape:
    """Return how the same run is read where it is a part of something larger."""
    named: dict[str, Any] = {name: inside(run, getattr(shape, name)) for name in (*_QUERIES, "urls")}
    return replace(shape, **named)


def inside(run: Query | None, query: Query | None) -> Query | None:
    """Return a query that is asked of a part; none where either is missing."""
    return None if run is None or query is None else Query.parse(f"{run.text} | {query.text}")


def fold(word: str) -> str:
    """Return a status word as it is compared: case and outer blanks do not count."""
    return word.strip().lower()


def _read_states(table: Table) -> States:
    """Our state by status word, lower case."""
    if not table.need("states", what=f"which of its words is which of our states; {_EXAMPLE}"):
        return {}
    value = table.take("states")
    if not isinstance(value, dict):
        table.fault("states", f"must be a table by our states; {_EXAMPLE}")
        return {}
    states: dict[str, JobState] = {}
    for name, words in value.items():
        for number, word in _words(table, name, words):
            if word in states and states[word] != name:
                table.fault(f"states.{name}[{number}]", f"{word!r} is also a word for {states[word]}")
            states[word] = JobState(name)
    if JobState.SUCCEEDED not in states.values() and "succeeded" not in value:
        table.fault("states", "has no word for succeeded: no job would ever come home")
    return states


def _words(table: Table, name: str, words: object) -> Iterator[tuple[int, str]]:
    known = [str(state) for state in JobState]
    if name not in known:
        meant = suggestion(name, known) or f"; known: {', '.join(known)}"
        table.fault(f"states.{name}", f"is no state of ours{meant}")
        return
    listed = words if isinstance(words, list) else [words]
    for number, word in enumerate(listed):
        if isinstance(word, str) and word.strip():
            yield number, fold(word)
        else:
            table.fault(f"states.{name}[{number}]", "must be a status word, as text")


def _positive(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise ValueError("must be a number above 0, like 100 for per cent")
    return float(value)
