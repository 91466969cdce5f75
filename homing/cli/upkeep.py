"""`homing migrate | doctor`: the database's schema, and the health of the fleet, seen from the inside."""

from __future__ import annotations

import os

import typer

from homing.cli.arguments import JsonFlag
from homing.local import load_configuration
from homing.screen import print_json


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(migrate)
    app.command()(doctor)


def migrate(as_json: JsonFlag = False) -> None:
    """Bring the database to this release's schema. Harmless to repeat."""
    from jobs.storage.database import Database  # noqa: PLC0415
    from jobs.storage.migrations import current_version, newest_version, upgrade  # noqa: PLC0415

    settings = load_configuration().settings
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    database = Database.connect(settings.database_url)
    try:
        before = current_version(database)
        upgrade(settings.database_url)
    finally:
        database.close()
    now = newest_version()
    if as_json:
        print_json({"from": before, "to": now, "changed": before != now})
    else:
        print(f"the schema is at {now}" + ("" if before != now else " already"))


def doctor(as_json: JsonFlag = False) -> None:
    """Show on one screen what is alive, what is stuck, and what to do. Exit 1 when something is wrong."""
    from homing.doctor.examination import examine  # noqa: PLC0415
    from homing.doctor.page import print_page  # noqa: PLC0415

    findings = examine(load_configuration(), os.environ)
    if as_json:
        print_json(findings.document())
    else:
        print_page(findings)
    raise typer.Exit(0 if findings.is_well else 1)
