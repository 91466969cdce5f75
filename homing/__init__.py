"""Homing: every job comes home, once, in the right state, whatever gets lost on the way."""

from jobs.core.events import Event
from jobs.handlers import on

__all__ = ["Event", "on"]
