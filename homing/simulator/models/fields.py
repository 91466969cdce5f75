"""Reads the fields of an input, naming what is wrong with them."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping

from homing.simulator.models.result import BadInputError, Input, Row

#: Models do small work; a longer text is cut by none of them but refused here.
MAX_TEXT_CHARS = 200_000


def read_text(fields: Input, name: str, *, default: str | None = None) -> str:
    """Return a text that is not blank.

    Raises:
        BadInputError: it is missing without a default, blank, too long, or no text.
    """
    value = fields.get(name, default)
    if not isinstance(value, str) or not value.strip():
        raise BadInputError(f"{name} must be a text that is not blank")
    if len(value) > MAX_TEXT_CHARS:
        raise BadInputError(f"{name} is longer than {MAX_TEXT_CHARS} characters")
    return value


def read_number(fields: Input, name: str, *, default: float, low: float, high: float) -> float:
    """Return a number within bounds.

    Raises:
        BadInputError: it is no finite number from `low` to `high`.
    """
    value = as_number(fields.get(name, default))
    if value is None or not low <= value <= high:
        raise BadInputError(f"{name} must be a number from {low:g} to {high:g}")
    return value


def as_number(value: object) -> float | None:
    """Return the value as a finite number; none for anything else, truth values included."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def read_rows(fields: Input) -> list[Row]:
    """Return a table from `rows` (a list of objects) or `csv` (text with a header line).

    Raises:
        BadInputError: neither is there, or it holds no row.
    """
    value = fields.get("rows")
    if value is None and "csv" in fields:
        value = _parse_csv(read_text(fields, "csv"))
    if not isinstance(value, list) or not value:
        raise BadInputError("rows must be a list of objects, or csv a text with a header line")
    if not all(isinstance(row, Mapping) for row in value):
        raise BadInputError("each of rows must be an object")
    return [{str(name): cell for name, cell in row.items()} for row in value]


def _parse_csv(text: str) -> list[Row]:
    reader = csv.DictReader(io.StringIO(text.strip()), restkey="_more", restval="")
    try:
        return [{name: cell for name, cell in row.items() if name != "_more"} for row in reader]
    except csv.Error as error:
        raise BadInputError(f"csv cannot be read: {error}") from error
