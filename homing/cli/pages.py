"""A page of a list, as every list command shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from homing.cli.connect import connect
from homing.screen import Document, cell, print_json, print_table, say


def show_page(
    path: str,
    filters: Mapping[str, str | int | None],
    *,
    columns: Sequence[str],
    empty: str,
    as_json: bool,
    row: Callable[[Document], list[str]] | None = None,
) -> None:
    """Fetch a page and print it; say how to go on where it is not the last.

    Args:
        path: of the list.
        filters: its query, place included.
        columns: the table's headings; without `row` also the fields below them.
        empty: the sentence for none.
        as_json: print the page as it came.
        row: makes a line of the table.
    """
    with connect() as client:
        page = client.get(path, filters)
    if as_json:
        print_json(page)
        return
    line = row or (lambda entry: [cell(entry.get(name)) for name in columns])
    print_table(columns, [line(entry) for entry in page["data"]], empty=empty)
    if page.get("next_cursor"):
        say(f"more: --cursor {page['next_cursor']}")
