"""`homing up | demo | simulator`: what starts processes on this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from homing.cli.arguments import JsonFlag, parse_length
from homing.client.data_dir import data_dir_of
from homing.screen import print_json_line, say

Faults = Literal["none", "default", "brutal"]
DataDir = Annotated[
    Path | None, typer.Option(help="Database, Redis, logs and run.json. Default: HOMING_DATA_DIR, else .homing.")
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(up)
    app.command()(demo)
    app.command()(simulator)


def up(
    embedded: Annotated[bool, typer.Option("--embedded", help="Bring a Redis of its own; for one machine.")] = False,
    config: Annotated[Path | None, typer.Option(help="The TOML file. Default: HOMING_CONFIG.")] = None,
    data_dir: DataDir = None,
    port: Annotated[int | None, typer.Option(help="Of the API; 0 takes a free one.")] = None,
    processes: Annotated[str | None, typer.Option(help="Only these, with commas, by their names in run.json.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Run the fleet on this machine, restarting what dies, until Ctrl-C."""
    from homing.up.options import DEFAULT_PORT, FleetOptions  # noqa: PLC0415
    from homing.up.run import run_fleet  # noqa: PLC0415

    names = tuple(name.strip() for name in (processes or "").split(",") if name.strip())
    options = FleetOptions(
        data_dir=data_dir or data_dir_of(os.environ),
        port=DEFAULT_PORT if port is None else port,
        embedded=embedded,
        config=config,
        processes=names,
        json_output=as_json,
        environ=dict(os.environ),
    )
    raise typer.Exit(run_fleet(options))


def demo(
    jobs: Annotated[int, typer.Option(min=1, max=10_000, help="How many.")] = 40,
    seed: Annotated[int, typer.Option(help="Of the faults: the same seed, the same faults.")] = 1,
    faults: Annotated[Faults, typer.Option(help="How bad a day the provider has.")] = "default",
    input_file: Annotated[
        Path | None, typer.Option("--input", help="A file of jobs instead of the 40 that come along.")
    ] = None,
    kill: Annotated[
        bool, typer.Option("--kill", help="Kill processes of the fleet while the jobs run, as the seed decides.")
    ] = False,
    data_dir: Annotated[
        Path | None, typer.Option(help="Keep database and logs here. Default: a temporary folder.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Bring jobs home through injected faults, and prove it. Exit 0 only if every invariant held."""
    from homing.demo.command import run_demo  # noqa: PLC0415
    from homing.demo.options import DemoOptions  # noqa: PLC0415

    options = DemoOptions(
        jobs=jobs, seed=seed, faults=faults, input_file=input_file, data_dir=data_dir, as_json=as_json, kill=kill
    )
    raise typer.Exit(run_demo(options))


def simulator(  # noqa: PLR0913, PLR0917 - its options are its arguments
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 9000,
    seed: Annotated[int, typer.Option(help="Of the faults.")] = 0,
    faults: Annotated[Faults, typer.Option(help="How bad a day it has.")] = "none",
    plan: Annotated[Path | None, typer.Option(help="A file of jobs to come; they get the faults' full quotas.")] = None,
    idempotency: Annotated[
        Literal["replay", "reject", "none"], typer.Option(help="What a repeated Idempotency-Key meets.")
    ] = "replay",
    idempotency_window: Annotated[str, typer.Option(help="How long a key is remembered.")] = "24h",
    search: Annotated[
        bool, typer.Option("--search/--no-search", help="Whether jobs can be looked up by reference or key.")
    ] = True,
    search_lag: Annotated[str, typer.Option(help="How long a new job stays out of the search.")] = "0s",
    stream_resume: Annotated[
        bool, typer.Option("--stream-resume/--no-stream-resume", help="Whether a broken stream of output goes on.")
    ] = True,
    webhook_url: Annotated[str | None, typer.Option(help="For jobs without a callback_url.")] = None,
    webhook_scheme: Annotated[str, typer.Option(help="How it signs.")] = "standard-webhooks",
    webhook_secret: Annotated[
        str | None,
        typer.Option(envvar="SIMULATOR_WEBHOOK_SECRET", help="Default: one that everybody knows."),
    ] = None,
    time_scale: Annotated[float, typer.Option(help="Stretches every wait of it; 0.1 is ten times as fast.")] = 1.0,
    with_parent: Annotated[
        bool, typer.Option("--with-parent", hidden=True, help="End when standard input closes.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Run a simulated provider alone, until Ctrl-C."""
    from homing.cli.simulating import serve_simulator  # noqa: PLC0415
    from homing.simulator.config import DEMO_SECRET, SimulatorConfig  # noqa: PLC0415
    from homing.simulator.job_lines import read_job_lines  # noqa: PLC0415

    config = SimulatorConfig(
        port=port,
        seed=seed,
        faults=faults,
        plan=tuple(line.input for line in read_job_lines(plan)) if plan else (),
        idempotency=idempotency,
        idempotency_window=parse_length(idempotency_window),
        search=search,
        search_lag=parse_length(search_lag),
        stream_resume=stream_resume,
        webhook_url=webhook_url,
        webhook_scheme=webhook_scheme,
        webhook_secret=webhook_secret or DEMO_SECRET,
        time_scale=time_scale,
    )
    serve_simulator(config, announce=print_json_line if as_json else None, say=say, with_parent=with_parent)
