"""`homing submit | get | list | cancel | resolve`: one job, or a page of them, over the API."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from homing.cli.arguments import JsonFlag, Pairs, parse_input, parse_pairs, span
from homing.cli.connect import connect, open_fleet
from homing.cli.pages import show_page
from homing.screen import Document, cell, print_fields, print_json, print_table

if TYPE_CHECKING:
    from homing.client.documents import Job

JobId = Annotated[str, typer.Argument(help="The job, job_…", show_default=False)]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(submit)
    app.command()(get)
    app.command("list")(list_jobs)
    app.command()(cancel)
    app.command()(resolve)


def submit(  # noqa: PLR0913, PLR0917 - its options are its arguments
    provider: Annotated[str, typer.Argument(help="A provider entry of homing.toml.", show_default=False)],
    input_text: Annotated[
        str, typer.Option("--input", help="JSON, @file.json, or @- for standard input.", show_default=False)
    ] = "{}",
    key: Annotated[
        str | None, typer.Option("--key", help="Idempotency-Key: the same key never makes a second job.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Show progress until the job has ended.")] = False,
    timeout: Annotated[str | None, typer.Option(help="Stop waiting after this long, like 10m.")] = None,
    expected: Annotated[str | None, typer.Option(help="Usual duration, like 90s.")] = None,
    deadline: Annotated[str | None, typer.Option(help="Longest duration, like 2h.")] = None,
    metadata: Annotated[Pairs | None, typer.Option(help="name=value; may be repeated.")] = None,
    adopt: Annotated[
        str | None, typer.Option(help="Take charge of this run of the provider instead of submitting.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Send a job to a provider. With --wait: exit 0 only if it succeeded."""
    from homing.cli.follow import follow  # noqa: PLC0415

    inputs, words, within_s = parse_input(input_text), parse_pairs(metadata or []) or None, span(timeout)
    with open_fleet() as fleet:
        job = fleet.submit(provider, inputs, key=key, expected=expected, deadline=deadline, metadata=words, adopt=adopt)
        if wait:
            raise typer.Exit(follow(fleet, job.id, as_json=as_json, within_s=within_s))
    _show(job, as_json=as_json)


def get(
    job: JobId,
    history: Annotated[bool, typer.Option("--history", help="Every observation, applied or not.")] = False,
    save: Annotated[
        Path | None, typer.Option(help="Fetch its result files into this folder.", metavar="FOLDER")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show a job, its history, or where its result files were saved."""
    if save is not None and history:
        raise typer.BadParameter("shows no history: ask for one of the two", param_hint="--save")
    if save is not None:
        from homing.cli.saving import save_files  # noqa: PLC0415

        raise typer.Exit(save_files(job, save, as_json=as_json))
    if history:
        _show_history(job, as_json=as_json)
        return
    with open_fleet() as fleet:
        _show(fleet.get(job), as_json=as_json)


def _show_history(job: str, *, as_json: bool) -> None:
    from homing.client.api import job_path  # noqa: PLC0415

    with connect() as client:
        transitions = list(client.pages(job_path(job, "transitions")))
    if as_json:
        print_json({"data": transitions})
        return
    columns = ("at", "from", "to", "source", "applied", "reason", "provider_job_id", "event_id")
    print_table(columns, [[cell(row.get(name)) for name in columns] for row in transitions], empty="no history")


def list_jobs(
    state: Annotated[str | None, typer.Option(help="pending, running, succeeded, failed or canceled.")] = None,
    provider: Annotated[str | None, typer.Option(help="Only of this provider entry.")] = None,
    review: Annotated[str | None, typer.Option(help="A reason of review, or true for any.")] = None,
    created_after: Annotated[str | None, typer.Option(help="RFC 3339, like 2026-01-31T12:00:00Z.")] = None,
    metadata: Annotated[Pairs | None, typer.Option(help="name=value; may be repeated.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Jobs on a page.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="next_cursor of the page before.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """List jobs, newest first."""
    filters = {
        "state": state, "provider": provider, "review": review, "created_after": created_after,
        "limit": limit, "cursor": cursor,
    }  # fmt: skip
    filters |= {f"metadata.{name}": value for name, value in parse_pairs(metadata or []).items()}
    columns = ("job", "provider", "state", "progress", "review", "created")
    show_page("/v1/jobs", filters, columns=columns, empty="no jobs", as_json=as_json, row=_row)


def cancel(
    job: JobId,
    as_json: JsonFlag = False,
) -> None:
    """Ask for a job's end. It is canceled once the provider confirms."""
    with open_fleet() as fleet:
        _show(fleet.cancel(job), as_json=as_json)


def resolve(
    job: JobId,
    action: Annotated[Literal["settle", "resubmit", "poll", "acknowledge"], typer.Argument(show_default=False)],
    reason: Annotated[str, typer.Option(help="Why; kept in the job's history.", show_default=False)],
    state: Annotated[str | None, typer.Option(help="settle: running, succeeded, failed or canceled.")] = None,
    provider_job_id: Annotated[str | None, typer.Option(help="settle: the provider's id for the run.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """End a review: settle it yourself, submit again, poll again, or take note."""
    with open_fleet() as fleet:
        settled = fleet.resolve(job, action, reason=reason, state=state, provider_job_id=provider_job_id)
    _show(settled, as_json=as_json)


def _show(job: Job, *, as_json: bool) -> None:
    if as_json:
        print_json(job.document)
    else:
        print_fields(job.document)


def _row(job: Document) -> list[str]:
    fraction = (job.get("progress") or {}).get("fraction")
    done = "-" if fraction is None else f"{fraction:.0%}"
    review = (job.get("review") or {}).get("reason", "-")
    return [job["id"], job["provider"], job["state"], done, review, job["created_at"]]
