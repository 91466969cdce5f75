"""How a view answers: JSON with a status and headers, in the order the document was written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Response, json


def answer(document: Mapping[str, Any], status: int = 200, *, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON response."""
    return Response(json.dumps(document), status=status, content_type="application/json", headers=headers)
