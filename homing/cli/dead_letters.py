"""`homing dead-letters`: what exhausted its tries, and a person's decision about it."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import typer

from homing.cli.arguments import JsonFlag
from homing.cli.bulk_redrive import redrive_many
from homing.cli.connect import connect
from homing.cli.pages import show_page
from homing.screen import Document, print_fields, print_json

app = typer.Typer(help="What exhausted its tries: list, show, redrive, discard.", no_args_is_help=True)

_PATH = "/v1/dead-letters"

LetterId = Annotated[str, typer.Argument(help="The dead letter, dl_…", show_default=False)]
MaybeLetterId = Annotated[str | None, typer.Argument(help="One dead letter, dl_…", show_default=False)]
All = Annotated[bool, typer.Option("--all", help="All open ones that fit the filters.")]
Kind = Annotated[str | None, typer.Option(help="Only of this kind, like inbox or handler.")]
Job = Annotated[str | None, typer.Option(help="Only of this job.")]
Provider = Annotated[str | None, typer.Option(help="Only of this provider entry, or of its jobs.")]
Endpoint = Annotated[str | None, typer.Option(help="Only deliveries to this endpoint.")]
Reason = Annotated[str | None, typer.Option(help="Only where the reason has this in it.")]
Since = Annotated[str | None, typer.Option(help="RFC 3339: only what last failed then or later.")]
Until = Annotated[str | None, typer.Option(help="RFC 3339: only what last failed before.")]


@app.command("list")
def list_letters(  # noqa: PLR0913, PLR0917 - options, each by its name
    kind: Kind = None,
    job: Job = None,
    provider: Provider = None,
    endpoint: Endpoint = None,
    reason: Reason = None,
    since: Since = None,
    until: Until = None,
    closed: Annotated[bool, typer.Option("--closed", help="Also those somebody has dealt with.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Letters on a page.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="next_cursor of the page before.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """List dead letters, newest first."""
    fit = {"kind": kind, "job": job, "provider": provider, "endpoint": endpoint, "reason": reason}
    place = {"limit": limit, "cursor": cursor}
    filters = {**fit, "since": since, "until": until, "open": None if closed else "true", **place}
    columns = ("id", "kind", "job", "attempts", "last_failed_at", "reason")
    show_page(_PATH, filters, columns=columns, empty="no dead letters", as_json=as_json)


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
def redrive(  # noqa: PLR0913, PLR0917 - options, each by its name
    letter: MaybeLetterId = None,
    everything: All = False,
    kind: Kind = None,
    job: Job = None,
    provider: Provider = None,
    endpoint: Endpoint = None,
    reason: Reason = None,
    since: Since = None,
    until: Until = None,
    rate: Annotated[str, typer.Option(help="With --all: letters at most, like 10/s or 60/m.")] = "10/s",
    detach: Annotated[bool, typer.Option("--detach", help="With --all: do not stay until it is done.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Try again: one, or --all that fit the filters, at a rate."""
    if not everything:
        _settle("redrive", letter, everything=False, filters={}, as_json=as_json)
        return
    _name_one_or_all(letter, everything=True)
    fit = {"kind": kind, "job": job, "provider": provider, "endpoint": endpoint, "reason": reason}
    body = {name: value for name, value in {**fit, "since": since, "until": until}.items() if value is not None}
    with connect() as client:
        document = redrive_many(client, {**body, "rate": rate}, wait=not detach, tell=None if as_json else print)
    if as_json:
        print_json(document)
    raise typer.Exit(1 if document["state"] in ("failed", "canceled") or document["failed"] else 0)


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
    _name_one_or_all(letter, everything=everything)
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


def _name_one_or_all(letter: str | None, *, everything: bool) -> None:
    if everything == (letter is not None):
        raise typer.BadParameter("name one dead letter, or say --all", param_hint="LETTER")


def _sentence(action: str, answer: Document) -> str:
    if answer.get("status") == "noop":
        return f"{answer['id']}: nothing to do, {answer.get('why')}"
    return f"{answer['id']}: {'redriven' if action == 'redrive' else 'discarded'}"


def _path(letter: str, *further: str) -> str:
    return "/".join([_PATH, quote(letter, safe=""), *further])
