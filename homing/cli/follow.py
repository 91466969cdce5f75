"""`homing watch`, and what `submit --wait` shows: a job's progress until it has ended."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from homing.cli.arguments import JsonFlag, span
from homing.cli.connect import open_fleet
from homing.screen import Document, console, print_fields, print_json_line, say

if TYPE_CHECKING:
    from homing.client.documents import OutputPiece
    from homing.client.fleet import Homing

Show: TypeAlias = Callable[[Document], None]
Tell: TypeAlias = Callable[["OutputPiece"], None]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(watch)


def watch(
    job: Annotated[str, typer.Argument(help="The job, job_…", show_default=False)],
    timeout: Annotated[str | None, typer.Option(help="Stop after this long, like 10m.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Follow a job until it has ended, and print its output as it comes.

    Exit 0 only if it succeeded; --json prints each change as a line, and no output before the last.
    """
    within_s = span(timeout)
    with open_fleet() as fleet:
        code = follow(fleet, job, as_json=as_json, each_change=as_json, within_s=within_s)
    raise typer.Exit(code)


def follow(
    fleet: Homing,
    job_id: str,
    *,
    as_json: bool,
    each_change: bool = False,
    within_s: float | None = None,
) -> int:
    """Show a job until it has ended.

    Args:
        fleet: where it runs.
        job_id: the job.
        as_json: print the last document as JSON, and nothing else to standard output.
        each_change: print a line of JSON for every change, the last one included.
        within_s: give up after this long.

    Returns:
        The exit code: 0 if it succeeded.
    """
    job: Document = {}
    with _progress(quiet=as_json) as (show, tell):
        for changed in fleet.changes(job_id, timeout=within_s, on_output=None if as_json else tell):
            job = dict(changed.document)
            show(job)
            if each_change:
                print_json_line(job)
    if as_json and not each_change:
        print_json_line(job)
    elif not as_json:
        print_fields(job)
    return 0 if job["state"] == "succeeded" else 1


@contextmanager
def _progress(*, quiet: bool) -> Iterator[tuple[Show, Tell]]:
    """A moving bar on a terminal, a line per change elsewhere, both on standard error; output goes to the results."""
    output = _Output()
    if quiet:
        yield (lambda _job: None), output.tell
    elif sys.stderr.isatty():
        with _bar() as (show, hide):
            output.before = hide
            yield show, output.tell
    else:
        yield _lines(), output.tell
    output.close()


def _lines() -> Show:
    """A line per change, and none that only says again what the last one did: not every change is one to a reader."""
    last = ""

    def show(job: Document) -> None:
        nonlocal last
        if (line := describe(job)) != last:
            last = line
            say(line)

    return show


class _Output:
    """A job's output on standard output, as it comes."""

    def __init__(self) -> None:
        self.before: Callable[[], None] = lambda: None
        self._last = ""

    def tell(self, piece: OutputPiece) -> None:
        """Print a piece; say so where all of it comes once more."""
        if piece.begins_anew:
            self.close()
            say("the output begins anew")
        self.before()
        self._last = piece.text or self._last
        print(piece.text, end="", flush=True)

    def close(self) -> None:
        """End the line."""
        if self._last and not self._last.endswith("\n"):
            print(flush=True)
        self._last = ""


@contextmanager
def _bar() -> Iterator[tuple[Show, Callable[[], None]]]:
    """A bar, and how to bring it to rest: none can move below a text that grows."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(stderr=True)) as progress:
        bar = progress.add_task("", total=None)

        def show(job: Document) -> None:
            fraction = (job.get("progress") or {}).get("fraction")
            ended = job["finished_at"] is not None
            total = None if fraction is None and not ended else 1.0
            progress.update(bar, description=describe(job), completed=1.0 if ended else fraction or 0, total=total)

        yield show, progress.stop


def describe(job: Document) -> str:
    """Return where a job stands, in a line."""
    progress = job.get("progress") or {}
    parts = [job["id"], job["state"]]
    if progress.get("fraction") is not None:
        parts.append(f"{progress['fraction']:.0%}")
    if progress.get("message"):
        parts.append(str(progress["message"]))
    if review := job.get("review"):
        parts.append(f"waits for a person: {review['reason']} (`homing resolve {job['id']} …`)")
    return " ".join(parts)
