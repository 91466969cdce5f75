"""The fleet on one machine: every process of Homing, restarted when it dies."""

from __future__ import annotations

from homing.up.fleet import Fleet
from homing.up.options import FleetOptions
from homing.up.run import run_fleet
from homing.up.run_file import Running

__all__ = ["Fleet", "FleetOptions", "Running", "run_fleet"]
