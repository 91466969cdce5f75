"""`homing deliveries`: what was sent where, and what came of it."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import typer

from homing.cli.arguments import JsonFlag
from homing.cli.connect import connect
from homing.cli.pages import show_page
from homing.screen import cell, print_fields, print_json, print_table

app = typer.Typer(help="What was sent where: list, show, resend.", no_args_is_help=True)

_PATH = "/v1/deliveries"

DeliveryId = Annotated[str, typer.Argument(help="The delivery, dlv_…", show_default=False)]


@app.command("list")
def list_deliveries(
    endpoint: Annotated[str | None, typer.Option(help="Only to this endpoint.")] = None,
    job: Annotated[str | None, typer.Option(help="Only of this job.")] = None,
    state: Annotated[str | None, typer.Option(help="pending, succeeded, failed, held or dropped.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Deliveries on a page.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="next_cursor of the page before.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """List deliveries, newest first."""
    filters = {"endpoint": endpoint, "job": job, "state": state, "limit": limit, "cursor": cursor}
    columns = ("id", "endpoint", "type", "job", "state", "attempt_count", "next_try_at")
    show_page(_PATH, filters, columns=columns, empty="no deliveries", as_json=as_json)


@app.command()
def show(delivery: DeliveryId, as_json: JsonFlag = False) -> None:
    """Show one with every attempt."""
    with connect() as client:
        document = client.get(_path(delivery))
    if as_json:
        print_json(document)
        return
    print_fields({name: value for name, value in document.items() if name != "attempts"})
    columns = ("at", "status", "ms", "error", "excerpt")
    print_table(
        columns, [[cell(line.get(name)) for name in columns] for line in document["attempts"]], empty="no tries"
    )


@app.command()
def resend(delivery: DeliveryId, as_json: JsonFlag = False) -> None:
    """Send it again now: same id, same bytes, signed anew."""
    with connect() as client:
        document = client.post(_path(delivery, "resend"))
    if as_json:
        print_json(document)
    else:
        print(f"{document['id']}: due now")


def _path(delivery: str, *further: str) -> str:
    return "/".join([_PATH, quote(delivery, safe=""), *further])
