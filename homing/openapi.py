"""The OpenAPI document as a whole: what the views say, and the door for providers, which is no view of Flask's."""

from __future__ import annotations

from typing import Any

from jobs.api.openapi import describe_guarded
from jobs.api.problems import MEDIA_TYPE

_STATUSES = ["accepted", "duplicate", "conflict", "quarantined", "ignored", "parked"]
_ANSWER = {
    "description": "Stored; `accepted` may become another status, which `GET /v1/inbox/{id}` shows",
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "required": ["status", "event"],
                "properties": {"status": {"enum": _STATUSES}, "event": {"type": "string"}},
            }
        }
    },
}
_REFUSALS = {
    "403": "The signature is missing, malformed, wrong, expired or from the future; the answer does not say which",
    "404": "No such provider",
    "413": "Too large",
    "415": "An encoding other than gzip",
    "503": "Nothing was stored; come again after Retry-After",
}
_PROVIDER = {"name": "provider", "in": "path", "required": True, "schema": {"type": "string"}}
_TOKEN = {"name": "token", "in": "path", "required": True, "schema": {"type": "string"}}


def describe(document: dict[str, Any]) -> dict[str, Any]:
    """Completes the document the views make."""
    described = describe_guarded(document)
    tags = [*described["tags"], {"name": "Webhooks"}]
    described["tags"] = list({tag["name"]: tag for tag in tags}.values())  # blueprints may share one
    described["paths"]["/webhooks/{provider}"] = {"post": _receive("Deliver a webhook of an account", [_PROVIDER])}
    described["paths"]["/webhooks/{provider}/{token}"] = {
        "post": _receive("Deliver a webhook of one attempt, by its callback URL", [_PROVIDER, _TOKEN])
    }
    return described


def _receive(summary: str, parameters: list[dict[str, Any]]) -> dict[str, Any]:
    problem = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    refusals = {status: {"description": words, "content": problem} for status, words in _REFUSALS.items()}
    return {
        "summary": summary,
        "description": "Signed as the provider's entry says. The signature is over the bytes on the wire.",
        "tags": ["Webhooks"],
        "parameters": parameters,
        "requestBody": {"required": True, "content": {"application/json": {"schema": {}}}},
        "responses": {"200": _ANSWER, **refusals},
    }
