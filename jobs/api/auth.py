"""Who may come in. Closed by default: a guarded blueprint asks for a key before any of its views is reached."""

from __future__ import annotations

from flask import Blueprint, g, request

from jobs.api.context import principal, runtime
from jobs.core.errors import Forbidden
from jobs.core.text import clean
from jobs.services.keys import Role, authenticate

#: Bodies of API requests; a job's input should name its files, not contain them.
MAX_BODY_BYTES = 1024 * 1024

_READING = frozenset({"GET", "HEAD", "OPTIONS"})


def guard(blueprint: Blueprint) -> None:
    """Asks for a key on every route of a blueprint: to read a viewer's, for anything else an operator's."""
    blueprint.before_request(_admit)


def require(role: Role) -> None:
    """Refuses whoever has a lesser role; for views that need more than :func:`guard` asks.

    Raises:
        Forbidden: The key's role does not include it.
    """
    asking = principal()
    if not asking.role.includes(role):
        raise Forbidden(f"this needs the role {role}; key {asking.key_id} has the role {asking.role}")


def _admit() -> None:
    request.max_content_length = MAX_BODY_BYTES
    request.view_args = clean(request.view_args)  # no database can be asked for an id with a U+0000 in it
    g.principal = authenticate(runtime().database, request.headers.get("Authorization"))
    require(Role.VIEWER if request.method in _READING else Role.OPERATOR)
