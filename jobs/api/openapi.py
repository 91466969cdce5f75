"""What the OpenAPI document says of every guarded route, so that no view has to repeat it."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from pydantic import BaseModel

from jobs.api.problems import MEDIA_TYPE

SECURITY_SCHEMES = {"api_key": {"type": "http", "scheme": "bearer", "description": "`homing keys create` makes a key"}}

_GUARDED = "/v1/"
_IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Yours; the same on every retry of this request",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
}


class FieldProblem(BaseModel):
    """One field at fault."""

    field: str
    message: str


class Problem(BaseModel):
    """An error, after RFC 9457; `type` is stable, `errors` is there where single fields are at fault."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[FieldProblem] | None = None


def describe_guarded(document: dict[str, Any]) -> dict[str, Any]:
    """Adds the key, and the problems any guarded route may answer with."""
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    template = "#/components/schemas/{model}"
    for model in (FieldProblem, Problem):
        schema = model.model_json_schema(ref_template=template)
        schema.pop("$defs", None)
        schemas[model.__name__] = schema
    for path, operations in document["paths"].items():
        if path.startswith(_GUARDED):
            for method, operation in operations.items():
                _describe(operation, path=path, method=method)
    return document


def _describe(operation: dict[str, Any], *, path: str, method: str) -> None:
    operation["security"] = [{"api_key": []}]
    has_input = "requestBody" in operation or operation.get("parameters")
    statuses = [401, 403, 503]
    statuses += [404] if "{" in path else []
    statuses += [409] if method == "post" else []
    statuses += [400, 413] if "requestBody" in operation else []
    statuses += [422] if has_input else []
    for status in sorted(statuses):
        operation["responses"][str(status)] = {
            "description": HTTPStatus(status).phrase,
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
    if (path, method) == ("/v1/jobs", "post"):
        operation.setdefault("parameters", []).append(_IDEMPOTENCY_KEY)
    if "requestBody" in operation:
        operation["requestBody"]["required"] = True
