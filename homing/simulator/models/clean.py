"""`clean`: trims a table, reads its numbers, and drops empty and repeated rows."""

from __future__ import annotations

import json
import re

from homing.simulator.models.documents import write_csv
from homing.simulator.models.fields import read_rows
from homing.simulator.models.result import Input, Result, ResultFile, Row

_NUMBER = re.compile(r"[+-]?[0-9]{1,15}(\.[0-9]{1,15})?")


def clean(fields: Input) -> Result:
    """Answer the `rows` (or `csv`) that are left, and how many were empty or repeated."""
    given = [_tidy(row) for row in read_rows(fields)]
    filled = [row for row in given if any(cell is not None for cell in row.values())]
    unique = list({json.dumps(row, sort_keys=True): row for row in reversed(filled)}.values())[::-1]
    output: dict[str, object] = {
        "rows": unique,
        "empty": len(given) - len(filled),
        "repeated": len(filled) - len(unique),
    }
    return Result(output, (ResultFile("clean.csv", "text/csv", write_csv(unique)),))


def _tidy(row: Row) -> Row:
    return {name.strip().lower(): _tidy_cell(cell) for name, cell in row.items()}


def _tidy_cell(cell: object) -> object:
    if not isinstance(cell, str):
        return cell
    text = cell.strip()
    if not text:
        return None
    return _number(text)


def _number(text: str) -> object:
    """The number a text plainly means, or the text: a date or 1_0 is none."""
    if not _NUMBER.fullmatch(text):
        return text
    return int(text) if text.lstrip("+-").isdigit() else float(text)
