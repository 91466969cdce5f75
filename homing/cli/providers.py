"""`homing providers`: the accounts at providers, how they are doing, and whether they can work at all."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import typer

from homing.cli.arguments import JsonFlag
from homing.cli.connect import connect
from homing.cli.pages import show_page
from homing.local import load_configuration
from homing.screen import Document, cell, print_json, print_table

app = typer.Typer(help="Accounts at providers: list, check, pause, resume, recheck.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="A provider entry of homing.toml.", show_default=False)]


@app.command("list")
def list_providers(as_json: JsonFlag = False) -> None:
    """List the provider entries with their jobs counted."""
    columns = (
        "name",
        "adapter",
        "backlog",
        "home by webhook",
        "home by poll",
        "spent this month",
        "paused since",
        "away since",
    )
    empty = "homing.toml names no provider"
    show_page("/v1/providers", {}, columns=columns, empty=empty, as_json=as_json, row=_row)


@app.command()
def check(
    name: Annotated[str | None, typer.Argument(help="Only this entry.", show_default=False)] = None,
    as_json: JsonFlag = False,
) -> None:
    """Check configuration, secrets, reachability, and that a signed event gets in. Exit 1 if one fails."""
    from homing.cli.provider_check import check_providers  # noqa: PLC0415 - needs the whole house

    results = check_providers(load_configuration(), only=name)
    if as_json:
        print_json({"ok": all(result.ok for result in results), "checks": [each.document() for each in results]})
    else:
        rows = [(each.provider, each.check, "ok" if each.ok else "FAILED", each.detail) for each in results]
        print_table(("provider", "check", "", "detail"), rows, empty="homing.toml names no provider")
    raise typer.Exit(0 if all(result.ok for result in results) else 1)


@app.command()
def pause(name: Name, as_json: JsonFlag = False) -> None:
    """Send no more requests to a provider; its webhooks are still taken."""
    _set(name, "pause", as_json=as_json)


@app.command()
def resume(name: Name, as_json: JsonFlag = False) -> None:
    """End a pause."""
    _set(name, "resume", as_json=as_json)


@app.command()
def recheck(name: Name, as_json: JsonFlag = False) -> None:
    """Check what was refused once more, after a secret was corrected; what is authentic comes in."""
    with connect() as client:
        result = client.post(f"/v1/providers/{quote(name, safe='')}/recheck")
    if as_json:
        print_json(result)
    else:
        print(
            f"{name}: {result['checked']} checked, {result['taken']} taken in "
            f"({result['duplicate']} of them known already), {result['refused']} refused again"
        )


def _set(name: str, action: str, *, as_json: bool) -> None:
    with connect() as client:
        provider = client.post(f"/v1/providers/{quote(name, safe='')}/{action}")
    if as_json:
        print_json(provider)
    else:
        print(f"{provider['name']}: {'paused' if provider['paused_at'] else 'not paused'}")


def _row(provider: Document) -> list[str]:
    home_by = provider["home_by"]
    return [
        provider["name"],
        provider["adapter"],
        str(provider["backlog"]),
        str(home_by.get("webhook", 0)),
        str(home_by.get("poll", 0)),
        f"{provider['spend']['month']:.2f} {provider['spend']['currency']}",
        cell(provider["paused_at"]),
        cell((provider.get("outage") or {}).get("since")),
    ]
