"""`train`: fits a small linear model to the given points or rows, at once and exactly."""

from __future__ import annotations

from homing.simulator.models.documents import write_json
from homing.simulator.models.linear import fit_least_squares, read_table
from homing.simulator.models.result import Input, Result, ResultFile


def train(fields: Input) -> Result:
    """Fit `points` or `rows`/`csv` (column `target`); the output's `fit` is what `predict` takes."""
    table = read_table(fields)
    fit = fit_least_squares(table)
    error = fit.mean_squared_error(table)
    mean = sum(table.ys) / len(table.ys)
    spread = sum((y - mean) ** 2 for y in table.ys) / len(table.ys)
    output: dict[str, object] = {
        "fit": fit.to_json(),
        "points": len(table.ys),
        "mse": round(error, 9),
        "r2": round(1 - error / spread, 6) if spread else 1.0,
    }
    content = write_json(output)
    return Result(output, (ResultFile("model.json", "application/json", content),))
