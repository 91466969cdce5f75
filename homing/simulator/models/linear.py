"""Least squares, the one thing `train`, `fine-tune` and `predict` share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from homing.simulator.models.fields import as_number, read_rows
from homing.simulator.models.result import BadInputError, Input, Row

# A pivot this small, beside entries of the size of the data, means that the data decide nothing.
_SINGULAR = 1e-9


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers to learn from: `features` name the columns of `xs`."""

    features: tuple[str, ...]
    xs: list[list[float]]
    ys: list[float]


@dataclass(frozen=True, slots=True)
class Fit:
    """y = bias + Σ weight · x."""

    features: tuple[str, ...]
    weights: tuple[float, ...]
    bias: float

    def predict(self, x: Sequence[float]) -> float:
        """The value at x."""
        return self.bias + sum(weight * value for weight, value in zip(self.weights, x, strict=True))

    def mean_squared_error(self, table: Table) -> float:
        """How far off it is, on average, squared."""
        errors = [self.predict(x) - y for x, y in zip(table.xs, table.ys, strict=True)]
        return sum(error * error for error in errors) / len(errors)

    def to_json(self) -> dict[str, object]:
        """As `predict` takes it back."""
        weights = dict(zip(self.features, (round(weight, 9) for weight in self.weights), strict=True))
        return {"weights": weights, "bias": round(self.bias, 9)}


def read_table(fields: Input) -> Table:
    """Return the data of `points` (a list of [x, y]), or of `rows`/`csv` with a `target` column (else `y`).

    Raises:
        BadInputError: it is not a table of numbers.
    """
    points = fields.get("points")
    if points is None:
        return _table_of_rows(read_rows(fields), target=str(fields.get("target", "y")))
    if not isinstance(points, list) or not all(isinstance(point, list) and len(point) == 2 for point in points):
        raise BadInputError("points must be a list of [x, y]")
    return _table_of_rows([{"x": x, "y": y} for x, y in points], target="y")


def _table_of_rows(rows: list[Row], *, target: str) -> Table:
    if not rows or target not in rows[0]:
        raise BadInputError(f"there is no column {target!r} to learn")
    features = tuple(name for name in rows[0] if name != target)
    if not features:
        raise BadInputError(f"there is no column besides {target!r} to learn from")
    xs = [[_cell(row, name) for name in features] for row in rows]
    return Table(features, xs, [_cell(row, target) for row in rows])


def _cell(row: Row, name: str) -> float:
    value = row.get(name)
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            value = None
    number = as_number(value)
    if number is None:
        raise BadInputError(f"column {name!r} holds {row.get(name)!r}, which is no number")
    return number


def fit_least_squares(table: Table) -> Fit:
    """The line, plane … closest to the data.

    Raises:
        BadInputError: the data do not decide it (too few points, or one column follows from the others).
    """
    design = [[1.0, *x] for x in table.xs]
    size = len(design[0])
    matrix = [[sum(row[i] * row[j] for row in design) for j in range(size)] for i in range(size)]
    right = [sum(row[i] * y for row, y in zip(design, table.ys, strict=True)) for i in range(size)]
    bias, *weights = _solve(matrix, right)
    return Fit(table.features, tuple(weights), bias)


def _solve(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Gauss with row exchange; small enough systems that nothing better is needed."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    scale = max(abs(cell) for row in matrix for cell in row)
    for column in range(len(rows)):
        pivot = max(range(column, len(rows)), key=lambda index: abs(rows[index][column]))
        if abs(rows[pivot][column]) <= _SINGULAR * scale:
            raise BadInputError("these data do not decide a fit: give more points that differ")
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [cell / rows[column][column] for cell in rows[column]]
        _eliminate(rows, column)
    return [row[-1] for row in rows]


def _eliminate(rows: list[list[float]], column: int) -> None:
    for index, row in enumerate(rows):
        if index != column and row[column]:
            factor = row[column]
            rows[index] = [cell - factor * lead for cell, lead in zip(row, rows[column], strict=True)]
