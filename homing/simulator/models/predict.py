"""`predict`: applies a fit, as `train` returns it, to rows."""

from __future__ import annotations

from collections.abc import Mapping

from homing.simulator.models.documents import write_csv
from homing.simulator.models.fields import as_number, read_rows
from homing.simulator.models.result import BadInputError, Input, Result, ResultFile, Row


def predict(fields: Input) -> Result:
    """Answer `rows` (or `csv`), each with its `prediction`, under `fit` = `{"weights": {…}, "bias": …}`."""
    weights, bias = _read_fit(fields.get("fit"))
    rows: list[Row] = [{**row, "prediction": _value(row, weights, bias=bias)} for row in read_rows(fields)]
    return Result({"rows": rows}, (ResultFile("predictions.csv", "text/csv", write_csv(rows)),))


def _read_fit(value: object) -> tuple[dict[str, float], float]:
    weights = value.get("weights") if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or not isinstance(weights, Mapping):
        raise BadInputError('fit must be {"weights": {…}, "bias": …}, as train returns it')
    numbers = {str(name): as_number(weight) for name, weight in weights.items()}
    bias = as_number(value.get("bias", 0.0))
    known = {name: number for name, number in numbers.items() if number is not None}
    if bias is None or len(known) != len(numbers):
        raise BadInputError("fit holds something that is no number")
    return known, bias


def _value(row: Row, weights: Mapping[str, float], *, bias: float) -> float:
    total = bias
    for name, weight in weights.items():
        cell = row.get(name)
        number = as_number(_from_text(cell) if isinstance(cell, str) else cell)
        if number is None:
            raise BadInputError(f"a row has no number in column {name!r}")
        total += weight * number
    return round(total, 6)


def _from_text(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None
