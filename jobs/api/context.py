"""What a view needs of the world: the process's parts, and who is asking."""

from __future__ import annotations

from flask import current_app, g

from jobs.services.keys import Principal
from jobs.services.runtime import Runtime

EXTENSION = "homing"


def runtime() -> Runtime:
    """The parts of this process."""
    found: Runtime = current_app.extensions[EXTENSION]
    return found


def principal() -> Principal:
    """Who is asking; only behind :func:`jobs.api.auth.guard`."""
    asking: Principal = g.principal
    return asking


def tenant() -> str:
    """The tenant everything is scoped to; only behind :func:`jobs.api.auth.guard`."""
    return principal().tenant
