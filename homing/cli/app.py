"""All commands, in the order of a working day."""

from __future__ import annotations

from typing import Annotated

import typer

from homing.cli import dead_letters, deliveries, endpoints, fleet, follow, jobs, keys, plan, providers, upkeep

app = typer.Typer(
    name="homing",
    help="Brings every long-running third-party job home: once, in the right state, whatever gets lost.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415

        print(version("homing"))
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Nothing of its own: the commands do the work."""


fleet.register(app)
upkeep.register(app)
plan.register(app)
jobs.register(app)
follow.register(app)
app.add_typer(dead_letters.app, name="dead-letters")
app.add_typer(endpoints.app, name="endpoints")
app.add_typer(deliveries.app, name="deliveries")
app.add_typer(providers.app, name="providers")
app.add_typer(keys.app, name="keys")
