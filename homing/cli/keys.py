"""`homing keys`: who may use the API. Works on the database itself."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from homing.cli.arguments import JsonFlag
from homing.local import open_database
from homing.screen import cell, print_json, print_table, say

app = typer.Typer(help="API keys: create, list, revoke. Works on the database itself.", no_args_is_help=True)


@app.command()
def create(
    tenant: Annotated[str, typer.Option(help="Whose jobs it sees.")] = "default",
    role: Annotated[Literal["viewer", "operator", "admin"], typer.Option(help="What it may do.")] = "operator",
    as_json: JsonFlag = False,
) -> None:
    """Make a key. It is shown once; only its digest is kept."""
    from jobs.services.keys import create_key  # noqa: PLC0415

    with open_database() as database:
        made = create_key(database, tenant=tenant, role=role)
    if as_json:
        print_json({"id": made.id, "key": made.key, "tenant": made.tenant, "role": made.role})
        return
    print(made.key)
    say(f"{made.id}: {made.role} of tenant {made.tenant}. Keep the key now; it is not shown again.")


@app.command("list")
def list_keys(as_json: JsonFlag = False) -> None:
    """Show every key without its secret, oldest first."""
    from jobs.services import keys  # noqa: PLC0415

    with open_database() as database:
        found = keys.list_keys(database)
    if as_json:
        print_json({"data": found})
        return
    columns = ("id", "tenant", "role", "created_at", "revoked_at")
    print_table(columns, [[cell(key[name]) for name in columns] for key in found], empty="no keys")


@app.command()
def revoke(
    key_id: Annotated[str, typer.Argument(help="The key's id, key_…", show_default=False)],
    as_json: JsonFlag = False,
) -> None:
    """Make a key useless, at once."""
    from jobs.services.keys import revoke_key  # noqa: PLC0415

    with open_database() as database:
        revoke_key(database, key_id)
    if as_json:
        print_json({"id": key_id, "revoked": True})
    else:
        print(f"{key_id} is revoked")
