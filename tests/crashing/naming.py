"""How points get their names: by the door that is passed, and by who passes it.

Who is the nearest function of ours on the stack that is no door itself: the service that asked for the commit or the
call. So the list of points is never kept by hand; whatever service is written tomorrow has its points the first time
it runs.
"""

from __future__ import annotations

import sys
from types import FrameType

_OURS = ("homing", "jobs", "webhooks", "reconciler")
#: Layers that carry out what a service asked for. ``homing.broker`` among them: each of its callers is a point.
_DOORS = ("jobs.storage", "jobs.net", "jobs.providers", "homing.broker", "jobs.services.stream_bell")
#: Celery's own traffic with Redis is no service's; losing it is what random kills are for.
_STRANGERS = ("kombu", "celery", "billiard")


def caller(depth: int = 2) -> str | None:
    """``module:function`` of the service behind a passage; None where it is not ours."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if _belongs(module, _STRANGERS):
            return None
        if _belongs(module, _OURS) and not _belongs(module, _DOORS):
            return f"{module}:{frame.f_code.co_qualname.replace('.<locals>', '')}"
        frame = frame.f_back
    return None


def route_of(method: str, path: str) -> str:
    """A request by its route: what stands for ids is left out."""
    words = [part for part in path.split("/") if part]
    kept = [part if (part.isalpha() and index != 1) or part == "v1" else "*" for index, part in enumerate(words)]
    if words[:1] == ["v1"] and len(words) > 1:
        kept[1] = words[1]
    return f"{method} /{'/'.join(kept[:4])}"


def _belongs(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)
