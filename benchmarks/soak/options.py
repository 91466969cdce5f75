"""What one soak is told."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

SQLITE, POSTGRESQL = "sqlite", "postgresql"
DATABASES = (SQLITE, POSTGRESQL)


@dataclass(frozen=True, slots=True)
class SoakOptions:
    """One run.

    Attributes:
        seconds: Of load; what is under way then is waited for.
        jobs_per_s: Submitted, all models in turn.
        events_per_s: Sent by a signing sender that runs no jobs; some twice.
        followers: Streams open at a time.
        sample_s: Seconds between samples.
        faults: Of the simulator.
        seed: Of the faults and of the traffic.
        database: One of :data:`DATABASES`.
        folder: Data dir, samples and report.
        kill_every_s: Between two kills of a process, in the first half; 0: none.
    """

    seconds: float
    jobs_per_s: float
    events_per_s: float
    followers: int
    sample_s: float
    faults: str
    seed: int
    database: str
    folder: Path
    kill_every_s: float

    @property
    def samples(self) -> Path:
        """One JSON line for each look."""
        return self.folder / "samples.jsonl"


def read_options() -> SoakOptions:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description="An hour of load: what grows?")
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--jobs-per-s", type=float, default=2.0)
    parser.add_argument("--events-per-s", type=float, default=2.0)
    parser.add_argument("--followers", type=int, default=6, help="event streams open at a time")
    parser.add_argument("--sample-s", type=float, default=30.0)
    parser.add_argument("--faults", default="default", choices=("none", "default", "brutal"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--database", default=SQLITE, choices=DATABASES)
    parser.add_argument("--folder", type=Path, default=Path("benchmarks/results/soak"), help="must be new or empty")
    parser.add_argument("--kill-every-s", type=float, default=300.0, help="in the first half; 0: nothing is killed")
    found = parser.parse_args()
    return SoakOptions(
        seconds=found.hours * 3600,
        jobs_per_s=found.jobs_per_s,
        events_per_s=found.events_per_s,
        followers=found.followers,
        sample_s=found.sample_s,
        faults=found.faults,
        seed=found.seed,
        database=found.database,
        folder=found.folder.absolute(),
        kill_every_s=found.kill_every_s,
    )
