"""What a person may ask of the demo, and the inputs it sends."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from homing.simulator.job_lines import JobLine, read_job_lines

#: The inputs that come along; `examples/jobs.jsonl` of the source tree is this file.
OWN_JOBS = Path(__file__).with_name("jobs.jsonl")


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """One run of the demo.

    Attributes:
        jobs: how many.
        seed: of the faults.
        faults: `none`, `default` or `brutal`.
        input_file: jobs to send instead of the demo's own.
        data_dir: kept afterwards; none: a temporary folder.
        as_json: print one document for machines, and nothing else to standard output.
        kill: kill processes of the fleet while the jobs run.
    """

    jobs: int = 40
    seed: int = 1
    faults: str = "default"
    input_file: Path | None = None
    data_dir: Path | None = None
    as_json: bool = False
    kill: bool = False


def read_inputs(options: DemoOptions) -> list[JobLine]:
    """Return as many jobs as were asked for.

    Where the file holds fewer they repeat, each time with another `seed` in the input, so that no two are equal.

    Raises:
        ConfigError: naming each bad line of the file.
    """
    lines = read_job_lines(options.input_file or OWN_JOBS)
    return [_repeated(lines[number % len(lines)], number // len(lines)) for number in range(options.jobs)]


def _repeated(line: JobLine, lap: int) -> JobLine:
    if lap == 0:
        return line
    return JobLine({**line.input, "seed": lap}, line.key and f"{line.key}-{lap}")
