"""The client of a fleet: submit a job, wait for it, follow its stream, verify the webhooks that tell of it.

    from homing.client import Homing

    with Homing() as fleet:
        job = fleet.wait(fleet.submit("renders", {"prompt": "a lighthouse in fog"}).id)

Names are loaded when they are asked for: a program that only verifies webhooks needs no HTTP client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from homing.client.documents import Failure, Job, OutputPiece, Progress, Review, StreamEvent
    from homing.client.errors import Busy, NoStream, Problem, Unreachable, WaitTimeout
    from homing.client.fleet import Homing
    from homing.client.verification import verify_webhook
    from jobs.core.errors import ConfigError, SignatureError
    from jobs.core.events import Event
    from jobs.core.states import JobState

__all__ = [
    "Busy",
    "ConfigError",
    "Event",
    "Failure",
    "Homing",
    "Job",
    "JobState",
    "NoStream",
    "OutputPiece",
    "Problem",
    "Progress",
    "Review",
    "SignatureError",
    "StreamEvent",
    "Unreachable",
    "WaitTimeout",
    "verify_webhook",
]

_HOMES = {
    "homing.client.documents": ("Failure", "Job", "OutputPiece", "Progress", "Review", "StreamEvent"),
    "homing.client.errors": ("Busy", "NoStream", "Problem", "Unreachable", "WaitTimeout"),
    "homing.client.fleet": ("Homing",),
    "homing.client.verification": ("verify_webhook",),
    "jobs.core.errors": ("ConfigError", "SignatureError"),
    "jobs.core.events": ("Event",),
    "jobs.core.states": ("JobState",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """A public name, from where it lives."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value
