"""Homing: every job comes home, once, in the right state, whatever gets lost on the way.

Plugins import what they need from here: ``from homing import on``.
"""

from jobs.core.events import Event
from jobs.handlers import on

__all__ = ["Event", "on"]
