"""What a soak found, as Markdown for a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.soak.books import Books
from benchmarks.soak.options import SoakOptions
from benchmarks.soak.verdict import Line
from benchmarks.table import number


def page(
    options: SoakOptions,
    lines: Sequence[Line],
    books: Books,
    *,
    facts: Mapping[str, str],
    sent: Mapping[str, int],
    errors: Mapping[str, int],
    last: Mapping[str, Any],
) -> str:
    """The block: what ran, whether jobs came home, what grew."""
    return "\n".join(
        [
            *(f"- {name}: {fact}" for name, fact in facts.items()),
            f"- load: {options.seconds / 3600:g} h on {options.database}, faults {options.faults}, seed {options.seed}",
            f"- sent: {_words(sent)}",
            f"- refused or cut off (clients went on): {_words(errors) or 'none'}",
            "",
            *_homecoming(books),
            "",
            *_table(lines),
            "",
            f"At the end: {_words(last['rows'])} rows; "
            + ", ".join(f"{name} {number(value)}" for name, value in last["disk"].items())
            + ".",
            "",
        ]
    )


def _homecoming(books: Books) -> Iterator[str]:
    calls, jobs = books.effects
    yield f"{books.submitted:,} jobs submitted, {books.lost} lost; states: {_words(books.states)}."
    yield f"{books.billed:,} runs billed for {books.ordered:,} attempts with a run; {books.doubled} billed twice."
    yield f"Handler: {calls:,} calls for {jobs:,} jobs. Inbox: {_words(books.inbox)}."
    yield f"Deliveries: {_words(books.deliveries)}."


def _table(lines: Sequence[Line]) -> Iterator[str]:
    yield "| watched | middle | end | grown in the second half | allowed | |"
    yield "| --- | ---: | ---: | ---: | ---: | --- |"
    for line in lines:
        cells = " | ".join(number(round(value, 2)) for value in (line.middle, line.end, line.grown, line.allowed))
        yield f"| {line.name} | {cells} | {'flat' if line.is_flat else '**GROWS**'} |"


def _words(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()) if count)
