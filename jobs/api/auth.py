"""Who may come in. Closed by default: a guarded blueprint asks for a key before any of its views is reached."""

from __future__ import annotations

from collections.abc import Callable

from flask import Blueprint, g, request

from jobs.api.context import principal, runtime
from jobs.core.errors import Forbidden
from jobs.core.text import clean
from jobs.services.keys import Principal, Role, authenticate

#: Bodies of API requests; a job's input should name its files, not contain them.
MAX_BODY_BYTES = 1024 * 1024

_READING = frozenset({"GET", "HEAD", "OPTIONS"})


def by_key() -> Principal:
    """Who asks, by the ``Authorization`` header.

    Raises:
        Unauthorized: No live key is in it.
    """
    return authenticate(runtime().database, request.headers.get("Authorization"))


def guard(blueprint: Blueprint, *, identify: Callable[[], Principal] = by_key, changing: Role = Role.OPERATOR) -> None:
    """Asks for a key on every route of a blueprint.

    Args:
        blueprint: What to guard.
        identify: Finds out who asks.
        changing: The role for anything but reading, for which a viewer's is enough.
    """

    def admit() -> None:
        request.max_content_length = MAX_BODY_BYTES
        request.view_args = clean(request.view_args)  # no database can be asked for an id with a U+0000 in it
        g.principal = identify()
        require(Role.VIEWER if request.method in _READING else changing)

    blueprint.before_request(admit)


def require(role: Role) -> None:
    """Refuses whoever has a lesser role; for views that need more than :func:`guard` asks.

    Raises:
        Forbidden: The key's role does not include it.
    """
    asking = principal()
    if not asking.role.includes(role):
        raise Forbidden(f"this needs the role {role}; key {asking.key_id} has the role {asking.role}")
