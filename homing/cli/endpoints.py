"""`homing endpoints`: where events are sent."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import typer

from homing.cli.arguments import JsonFlag
from homing.cli.connect import connect
from homing.cli.pages import show_page
from homing.screen import Document, cell, print_fields, print_json

app = typer.Typer(help="Where events are sent: list, add, disable, enable, rotate, recover.", no_args_is_help=True)

_PATH = "/v1/endpoints"
_COLUMNS = ("id", "url", "events", "state", "failing_since", "disabled_reason")

EndpointId = Annotated[str, typer.Argument(help="The endpoint, ep_…", show_default=False)]
SecretOption = Annotated[str | None, typer.Option(help="A secret of your own, whsec_…; default: one is made.")]


@app.command("list")
def list_endpoints(
    limit: Annotated[int, typer.Option(min=1, max=200, help="Endpoints on a page.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="next_cursor of the page before.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """List endpoints, newest first."""
    place = {"limit": limit, "cursor": cursor}
    show_page(_PATH, place, columns=_COLUMNS, empty="no endpoints", as_json=as_json, row=_row)


@app.command()
def add(
    url: Annotated[str, typer.Argument(help="Where to send events.", show_default=False)],
    events: Annotated[list[str] | None, typer.Option("--event", help="A type, or a pattern; repeatable.")] = None,
    secret: SecretOption = None,
    rate: Annotated[str | None, typer.Option(help="Tries at most, like 10/s.")] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="Tries at once at most.")] = None,
    description: Annotated[str | None, typer.Option(help="Your own words.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Have events sent to a URL. Shows the secret they are signed with, once."""
    wished = {"secret": secret, "rate": rate, "concurrency": concurrency, "description": description}
    body: Document = {"url": url, "events": events or ["job.*"]}
    body |= {name: value for name, value in wished.items() if value is not None}
    with connect() as client:
        _show(client.post(_PATH, body), as_json=as_json)


@app.command()
def disable(endpoint: EndpointId, as_json: JsonFlag = False) -> None:
    """Send nothing more. Events are kept."""
    with connect() as client:
        _show(client.post(_path(endpoint, "disable")), as_json=as_json)


@app.command()
def enable(endpoint: EndpointId, as_json: JsonFlag = False) -> None:
    """Send again, from now on; `homing endpoints recover` brings what was missed."""
    with connect() as client:
        _show(client.post(_path(endpoint, "enable")), as_json=as_json)


@app.command()
def rotate(endpoint: EndpointId, secret: SecretOption = None, as_json: JsonFlag = False) -> None:
    """Take a new secret and show it, once. The old one signs as well for 24 hours."""
    body = {} if secret is None else {"secret": secret}
    with connect() as client:
        _show(client.post(_path(endpoint, "rotate-secret"), body), as_json=as_json)


@app.command()
def recover(
    endpoint: EndpointId,
    since: Annotated[str, typer.Option(help="RFC 3339, like 2026-01-01T00:00:00Z.")],
    until: Annotated[str | None, typer.Option(help="RFC 3339; default: now.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Send again what an endpoint has missed, however much, at its own rate."""
    body = {"since": since} if until is None else {"since": since, "until": until}
    with connect() as client:
        _show(client.post(_path(endpoint, "recover"), body), as_json=as_json)


def _show(document: Document, *, as_json: bool) -> None:
    if as_json:
        print_json(document)
    else:
        print_fields(document)


def _row(endpoint: Document) -> list[str]:
    values = [endpoint.get(name) for name in _COLUMNS]
    return [", ".join(map(str, value)) if isinstance(value, list) else cell(value) for value in values]


def _path(endpoint: str, action: str) -> str:
    return f"{_PATH}/{quote(endpoint, safe='')}/{action}"
