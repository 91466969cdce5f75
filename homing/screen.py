"""What commands show: JSON for machines, tables and lines for people, errors that say what to do."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from jobs.core.errors import ConfigError, JobsError

if TYPE_CHECKING:
    from rich.console import Console

Document: TypeAlias = dict[str, Any]

# Not a terminal: a file or a pipe has no width, and an id must not be cut.
_PIPED_WIDTH = 200


def print_json(document: object) -> None:
    """Print a document as JSON, readable and complete."""
    print(json.dumps(document, indent=2, ensure_ascii=False))


def print_json_line(document: object) -> None:
    """Print a document as one line of JSON, at once: somebody is following."""
    print(json.dumps(document, ensure_ascii=False), flush=True)


def say(text: str) -> None:
    """Tell a person something that is no result: to standard error, so that results can be piped."""
    print(text, file=sys.stderr, flush=True)


def console(*, stderr: bool = False) -> Console:
    """Return a rich console; without a terminal it is wide enough to cut nothing."""
    from rich.console import Console  # noqa: PLC0415 - rich costs a tenth of a second

    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, width=None if stream.isatty() else _PIPED_WIDTH, highlight=False)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, empty: str) -> None:
    """Print rows under their headings, or the sentence for none."""
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, no_wrap=number == 0)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # data is never markup
    if table.row_count:
        console().print(table)
    else:
        print(empty)


def print_fields(document: Mapping[str, object]) -> None:
    """Print a document as name and value, one a line; values that hold more as JSON."""
    width = max((len(name) for name in document), default=0)
    for name, value in document.items():
        print(f"{name.ljust(width)}  {cell(value)}")


def cell(value: object) -> str:
    """Return a value as a person reads it in a table."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    return json.dumps(value, ensure_ascii=False)


def show_error(error: Exception, *, as_json: bool) -> None:
    """Show an error on standard error: each fault on a line of its own, or a problem document."""
    if as_json:
        print(json.dumps(_problem(error), ensure_ascii=False), file=sys.stderr)
        return
    lines = error.faults if isinstance(error, ConfigError) else _lines(error)
    say("\n".join(f"homing: {line}" for line in lines))


def _lines(error: Exception) -> list[str]:
    said = str(error)
    fields = error.fields if isinstance(error, JobsError) else ()
    return [said, *(f"  {fault.field}: {fault.message}" for fault in fields if fault.message != said)]


def _problem(error: Exception) -> Document:
    if not isinstance(error, JobsError):
        return {"type": "internal", "title": "Something went wrong", "detail": str(error)}
    problem: Document = {"type": error.slug, "title": error.title, "detail": error.detail}
    if isinstance(error, ConfigError):
        problem["faults"] = list(error.faults)
    if error.fields:
        problem["errors"] = [{"field": fault.field, "message": fault.message} for fault in error.fields]
    return problem
