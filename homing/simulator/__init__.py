"""A provider of long-running jobs over HTTP, with a ledger of all it did and faults that a seed decides.

It knows nothing of Homing: it is what the demo and the tests hold against it.
"""

from __future__ import annotations

from homing.simulator.app import create_simulator
from homing.simulator.config import DEMO_SECRET, IDEMPOTENCY_MODES, SimulatorConfig
from homing.simulator.job_lines import JobLine, read_job_lines
from homing.simulator.plan import FaultPlan
from homing.simulator.server import Running, running, serve

__all__ = [
    "DEMO_SECRET",
    "IDEMPOTENCY_MODES",
    "FaultPlan",
    "JobLine",
    "Running",
    "SimulatorConfig",
    "create_simulator",
    "read_job_lines",
    "running",
    "serve",
]
