"""`fine-tune`: moves a given linear model toward new points by gradient descent, and shows its losses."""

from __future__ import annotations

from collections.abc import Mapping

from homing.simulator.models.documents import write_json
from homing.simulator.models.fields import as_number, read_number
from homing.simulator.models.linear import Fit, Table, read_table
from homing.simulator.models.result import BadInputError, Input, Result, ResultFile

_SHOWN_LOSSES = 10


def fine_tune(fields: Input) -> Result:
    """Start from `start` (`{"weights": {…}, "bias": …}`, else zeros) and take `epochs` steps (default 200)."""
    table = read_table(fields)
    epochs = int(read_number(fields, "epochs", default=200, low=1, high=2000))
    fit = _start(fields.get("start"), table)
    rate = _safe_rate(table)
    losses = [fit.mean_squared_error(table)]
    for _ in range(epochs):
        fit = _step(fit, table, rate=rate)
        losses.append(fit.mean_squared_error(table))
    output: dict[str, object] = {
        "fit": fit.to_json(),
        "epochs": epochs,
        "loss_before": round(losses[0], 9),
        "loss_after": round(losses[-1], 9),
        "losses": [round(loss, 6) for loss in losses[:: max(1, len(losses) // _SHOWN_LOSSES)]],
    }
    content = write_json(output)
    return Result(output, (ResultFile("fine-tuned.json", "application/json", content),))


def _start(value: object, table: Table) -> Fit:
    if value is None:
        return Fit(table.features, tuple(0.0 for _ in table.features), 0.0)
    weights = value.get("weights") if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or not isinstance(weights, Mapping):
        raise BadInputError('start must be {"weights": {…}, "bias": …}')
    numbers = [as_number(weights.get(name, 0.0)) for name in table.features]
    bias = as_number(value.get("bias", 0.0))
    if bias is None or any(number is None for number in numbers):
        raise BadInputError("start holds something that is no number")
    return Fit(table.features, tuple(number or 0.0 for number in numbers), bias)


def _safe_rate(table: Table) -> float:
    """A step that cannot overshoot: the inputs' mean squared length bounds the curvature."""
    return 1.0 / (sum(1.0 + sum(x * x for x in row) for row in table.xs) / len(table.xs))


def _step(fit: Fit, table: Table, *, rate: float) -> Fit:
    errors = [fit.predict(x) - y for x, y in zip(table.xs, table.ys, strict=True)]
    scale = rate / len(errors)
    slopes = [
        sum(error * x[index] for error, x in zip(errors, table.xs, strict=True)) for index in range(len(fit.weights))
    ]
    weights = tuple(weight - scale * slope for weight, slope in zip(fit.weights, slopes, strict=True))
    return Fit(fit.features, weights, fit.bias - scale * sum(errors))
