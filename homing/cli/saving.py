"""What `homing get --save` does: a job's result files, in a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from homing.cli.connect import connect
from homing.client.files import list_files, save_file
from homing.screen import print_json, say


def save_files(job_id: str, folder: Path, *, as_json: bool) -> int:
    """Fetch every stored file, and say where each is, or why it is not, also where a later one cannot be had.

    Returns:
        The exit code: 0 if every file the job has is in the folder.

    Raises:
        BadParameter: the folder cannot be written.
    """
    with connect() as client:
        files = list_files(client, job_id)
        saved: dict[str, Path] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for file in files:
                if file["state"] == "stored":
                    saved[file["id"]] = save_file(client, file, folder)
        except OSError as error:
            raise typer.BadParameter(f"cannot write into {folder}: {error}", param_hint="--save") from None
        finally:
            _show(files, saved, as_json=as_json)
    return 0 if len(saved) == len(files) else 1


def _show(files: Sequence[Mapping[str, Any]], saved: Mapping[str, Path], *, as_json: bool) -> None:
    if as_json:
        print_json({"data": [{**file, "path": _text(saved.get(file["id"]))} for file in files]})
        return
    for path in saved.values():
        print(path)
    for file in files:
        if file["id"] not in saved:
            say(_why_not(file))
    if not files:
        say("no result files")


def _why_not(file: Mapping[str, Any]) -> str:
    if file["state"] == "stored":
        return f"{file['id']} was not saved"
    return f"{file['id']} is {file['state']}" + (f": {file['reason']}" if file["reason"] else "")


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
