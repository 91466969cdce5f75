"""`homing dead-letters`: what exhausted its tries, and a person's decision about it."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import typer

from homing.cli.arguments import JsonFlag
from homing.cli.connect import connect
from homing.screen import Document, cell, print_fields, print_json, print_table

app = typer.Typer(help="What exhausted its tries: list, show, redrive, discard.", no_args_is_help=True)

_PATH = "/v1/dead-letters"

LetterId = Annotated[str, typer.Argument(help="The dead letter, dl_…", show_default=False)]
MaybeLetterId = Annotated[str | None, typer.Argument(help="One dead letter, dl_…", show_default=False)]
All = Annotated[bool, typer.Option("--all", help="All open ones that fit the filters.")]
Kind = Annotated[str | None, typer.Option(help="Only of this kind, like inbox or handler.")]
Job = Annotated[str | None, typer.Option(help="Only of this job.")]


@app.command("list")
def list_letters(
    kind: Kind = None,
    job: Job = None,
    closed: Annotated[bool, typer.Option("--closed", help="Also those somebody has dealt with.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Letters on a page.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="next_cursor of the page before.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """List dead letters, newest first."""
    filters = {"kind": kind, "job": job, "open": None if closed else "true", "limit": limit, "cursor": cursor}
    with connect() as client:
        page = client.get(_PATH, filters)
    if as_json:
        print_json(page)
        return
    columns = ("id", "kind", "job", "attempts", "last_failed_at", "reason")
    rows = [[cell(letter.get(name)) for name in columns] for letter in page["data"]]
    print_table(columns, rows, empty="no dead letters")


@app.command()
def show(letter: LetterId, as_json: JsonFlag = False) -> None:
    """Show one with its evidence."""
    with connect() as client:
        document = client.get(_path(letter))
    if as_json:
        print_json(document)
    else:
        print_fields(document)


@app.command()
def redrive(
    letter: MaybeLetterId = None,
    everything: All = False,
    kind: Kind = None,
    job: Job = None,
    as_json: JsonFlag = False,
) -> None:
    """Try again: one, or --all that fit the filters."""
    _settle("redrive", letter, everything=everything, filters={"kind": kind, "job": job}, as_json=as_json)


@app.command()
def discard(
    letter: MaybeLetterId = None,
    everything: All = False,
    kind: Kind = None,
    job: Job = None,
    as_json: JsonFlag = False,
) -> None:
    """Give up on one, or on --all that fit the filters. Their history stays."""
    _settle("discard", letter, everything=everything, filters={"kind": kind, "job": job}, as_json=as_json)


def _settle(
    action: str, letter: str | None, *, everything: bool, filters: dict[str, str | None], as_json: bool
) -> None:
    if everything == (letter is not None):
        raise typer.BadParameter("name one dead letter, or say --all", param_hint="LETTER")
    with connect() as client:
        letters = [letter] if letter else [each["id"] for each in client.pages(_PATH, {**filters, "open": "true"})]
        answers = [{"id": each, **client.post(_path(each, action))} for each in letters]
    if as_json:
        print_json({"data": answers} if everything else answers[0])
        return
    for answer in answers:
        print(_sentence(action, answer))
    if not answers:
        print("no dead letters")


def _sentence(action: str, answer: Document) -> str:
    if answer.get("status") == "noop":
        return f"{answer['id']}: nothing to do, {answer.get('why')}"
    return f"{answer['id']}: {'redriven' if action == 'redrive' else 'discarded'}"


def _path(letter: str, *further: str) -> str:
    return "/".join([_PATH, quote(letter, safe=""), *further])
