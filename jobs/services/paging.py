"""Pages of a list: ``{"data": […], "next_cursor": "…" | null}``, the shape of every list of the API."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Sequence
from typing import Any

from jobs.core.errors import Unprocessable
from jobs.services.documents import Document, Row
from jobs.services.faults import field_fault

MAX_LIMIT = 200
DEFAULT_LIMIT = 50

_PLACE = re.compile(r"[a-z0-9_]{1,64}")
#: More digits than a 64-bit row number has.
_MAX_DIGITS = 18


def page(rows: Sequence[Row], *, limit: int, place: str, show: Callable[[Any], Document]) -> Document:
    """One page.

    Args:
        rows: Up to ``limit + 1`` rows: the one too many says that there is more.
        limit: How many to show.
        place: The column whose value continues the list.
        show: Makes a row's document.
    """
    shown = rows[:limit]
    more = len(rows) > limit
    return {
        "data": [show(row) for row in shown],
        "next_cursor": _encode(str(shown[-1][place])) if more else None,
    }


def text_place(cursor: str | None) -> str | None:
    """The place a cursor names, in a list ordered by ids.

    Raises:
        Unprocessable: It is no cursor of ours.
    """
    return None if cursor is None else _decode(cursor)


def number_place(cursor: str | None, *, start: int = 0) -> int:
    """The place a cursor names, in a list ordered by numbers; ``start`` without a cursor.

    Raises:
        Unprocessable: It is no cursor of ours.
    """
    if cursor is None:
        return start
    place = _decode(cursor)
    if not place.isdigit() or len(place) > _MAX_DIGITS:
        raise _no_cursor()
    return int(place)


def _encode(place: str) -> str:
    return base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def _decode(cursor: str) -> str:
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        place = raw.decode("ascii")
    except (binascii.Error, ValueError):
        raise _no_cursor() from None
    if not _PLACE.fullmatch(place):
        raise _no_cursor()
    return place


def _no_cursor() -> Unprocessable:
    message = "is not a cursor of this list; take next_cursor as it was given, or leave it out to start again"
    return field_fault("cursor", message)
