"""A job's result files, from the fleet's store into a folder of ours: whole, or not at all."""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote

from homing.client.api import ApiClient, job_path
from homing.client.errors import Unreachable
from jobs.ids import new_token


def list_files(api: ApiClient, job_id: str) -> list[Mapping[str, Any]]:
    """Return a job's result files as the API describes them."""
    return list(api.pages(job_path(job_id, "artifacts")))


def save_file(api: ApiClient, file: Mapping[str, Any], folder: Path) -> Path:
    """Fetch a stored file; one that is there already is replaced.

    Args:
        api: where it is stored.
        file: as the API describes it.
        folder: where it goes; exists.

    Raises:
        Unreachable: it did not come, or came damaged; nothing is left of it.
        Problem: it is not stored.
    """
    target = folder / _name(file)
    # Of this call alone: another one into the same folder would write to the same file, also after it was checked.
    draft = target.with_name(f".{target.name}.{new_token()}.part")
    try:
        with draft.open("w+b") as opened:
            api.download(f"/v1/artifacts/{quote(file['id'], safe='')}/content", into=opened)
            opened.seek(0)
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
        if digest != file["sha256"]:
            raise Unreachable(f"{file['id']} came damaged: its SHA-256 is not the stored one's")
        return draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _name(file: Mapping[str, Any]) -> str:
    """The name the API itself gives to a download, and never a path."""
    return PurePath(file["id"]).name + (mimetypes.guess_extension(file["content_type"] or "") or "")
