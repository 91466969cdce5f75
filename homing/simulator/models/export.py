"""`export`: statistics over a text or a table, as JSON and as CSV."""

from __future__ import annotations

import re
import statistics
from collections import Counter

from homing.simulator.models.documents import write_csv, write_json
from homing.simulator.models.fields import as_number, read_rows, read_text
from homing.simulator.models.result import Input, Result, ResultFile, Row

_TOP_WORDS = 10


def export(fields: Input) -> Result:
    """Describe `text`, or else `rows`/`csv` column by column."""
    described, table = _describe_text(read_text(fields, "text")) if "text" in fields else _describe_rows(fields)
    content = write_json(described)
    files = (
        ResultFile("statistics.json", "application/json", content),
        ResultFile("statistics.csv", "text/csv", write_csv(table)),
    )
    return Result(described, files)


def _describe_text(text: str) -> tuple[dict[str, object], list[Row]]:
    words = re.findall(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*", text.lower())
    top = Counter(words).most_common(_TOP_WORDS)
    described: dict[str, object] = {
        "characters": len(text),
        "words": len(words),
        "different_words": len(set(words)),
        "sentences": len(re.findall(r"[.!?…]+(?:\s|$)", text)) or 1,
        "mean_word_length": round(statistics.fmean(map(len, words)), 2) if words else 0.0,
        "top_words": [{"word": word, "count": count} for word, count in top],
    }
    return described, [{"word": word, "count": count} for word, count in top]


def _describe_rows(fields: Input) -> tuple[dict[str, object], list[Row]]:
    rows = read_rows(fields)
    columns = dict.fromkeys(name for row in rows for name in row)
    table = [_describe_column(name, [row.get(name) for row in rows]) for name in columns]
    return {"rows": len(rows), "columns": table}, table


def _describe_column(name: str, cells: list[object]) -> Row:
    numbers = [number for cell in cells if (number := as_number(cell)) is not None]
    row: Row = {"column": name, "filled": sum(cell not in (None, "") for cell in cells)}
    if numbers:
        row |= {"min": min(numbers), "max": max(numbers), "mean": round(statistics.fmean(numbers), 6)}
    return row
