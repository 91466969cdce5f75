"""What `homing get --save` does: a job's result files, in a folder."""

from __future__ import annotations

from pathlib import Path

import typer

from homing.cli.connect import connect
from homing.client.files import list_files, save_file
from homing.screen import print_json, say


def save_files(job_id: str, folder: Path, *, as_json: bool) -> int:
    """Fetch every stored file, and say where each is, or why it is not.

    Returns:
        The exit code: 0 if every file the job has is in the folder.

    Raises:
        BadParameter: the folder cannot be written.
    """
    with connect() as client:
        files = list_files(client, job_id)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            saved = {file["id"]: save_file(client, file, folder) for file in files if file["state"] == "stored"}
        except OSError as error:
            raise typer.BadParameter(f"cannot write into {folder}: {error}", param_hint="--save") from None
    if as_json:
        print_json({"data": [{**file, "path": _text(saved.get(file["id"]))} for file in files]})
    else:
        for path in saved.values():
            print(path)
        for file in files:
            if file["id"] not in saved:
                say(f"{file['id']} is {file['state']}" + (f": {file['reason']}" if file["reason"] else ""))
        if not files:
            say("no result files")
    return 0 if len(saved) == len(files) else 1


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
