"""Writes results as files that any program reads: UTF-8, whatever the input held."""

from __future__ import annotations

import csv
import io
import json

from homing.simulator.models.result import Row


def encode_text(text: str) -> bytes:
    """Return UTF-8; half a surrogate pair, which has none, becomes a question mark."""
    return text.encode("utf-8", "replace")


def write_json(value: object) -> bytes:
    """Return indented JSON, for people too."""
    return encode_text(json.dumps(value, indent=2, ensure_ascii=False))


def write_csv(rows: list[Row]) -> bytes:
    """Return a table as CSV; columns in the order in which they first appear."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return encode_text(buffer.getvalue())
