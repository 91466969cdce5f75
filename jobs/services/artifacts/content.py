"""Reading result files: which there are, and what is in one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO

from jobs.core.errors import Conflict, NotFound
from jobs.services.artifacts.store import open_store
from jobs.services.documents import Document, artifact_document
from jobs.services.runtime import Runtime
from jobs.storage.artifacts import get_artifact, list_artifacts
from jobs.storage.database import Database
from jobs.storage.jobs import get_job


@dataclass(frozen=True, slots=True)
class Content:
    """A stored file, open; whoever has it closes it."""

    id: str
    content_type: str
    size: int
    sha256: str
    file: BinaryIO


def list_files(database: Database, *, tenant: str, job_id: str) -> list[Document]:
    """A job's files, those of earlier attempts first.

    Raises:
        NotFound: There is no such job, or it is another tenant's.
    """
    with database.read() as tx:
        get_job(tx, job_id, tenant=tenant)
        return [artifact_document(row) for row in list_artifacts(tx, job_id)]


def open_content(runtime: Runtime, *, tenant: str, artifact_id: str) -> Content:
    """A file's content.

    Raises:
        NotFound: There is no such file, or it is another tenant's, or it was removed.
        Conflict: It is not stored.
    """
    with runtime.database.read() as tx:
        row = get_artifact(tx, artifact_id, tenant=tenant)
    if row["state"] != "stored":
        why = f": {row['reason']}" if row["reason"] else ""
        raise Conflict(f"the file is {row['state']}{why}")
    try:
        file = open_store(runtime.settings).open(row["path"])
    except FileNotFoundError as error:
        raise NotFound(f"the content of {artifact_id!r} is no longer in the store") from error
    return Content(row["id"], row["content_type"], row["size_bytes"], row["sha256"], file)
