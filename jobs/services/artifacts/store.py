"""Where result files are kept: any fsspec address (``file://…``, ``s3://…``).

A file appears under its name whole or not at all: it is written to a temporary one, judged, and only then moved.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import fsspec
from fsspec.implementations.local import LocalFileSystem

from jobs.config.settings import Settings


class ArtifactStore:
    """Keeps files under paths of ours."""

    def __init__(self, url: str, *, scratch: Path) -> None:
        """Dials nobody yet.

        Args:
            url: Where files are kept.
            scratch: A folder for files under way, where the store itself is not on this disk.
        """
        self._files, self._root = fsspec.core.url_to_fs(url)
        self._is_local = isinstance(self._files, LocalFileSystem)
        self._scratch = Path(self._root) / ".incoming" if self._is_local else scratch

    @contextmanager
    def receive(self) -> Iterator[tuple[BinaryIO, Path]]:
        """A temporary file and its place; gone at the end, unless it was kept."""
        self._scratch.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=self._scratch)
        try:
            with os.fdopen(handle, "w+b") as file:
                yield file, Path(name)
        finally:
            Path(name).unlink(missing_ok=True)

    def keep(self, received: Path, path: str) -> None:
        """Moves a received file to its place, in one step that others see whole or not at all.

        Raises:
            OSError: The store is full, read-only or away.
        """
        target = f"{self._root}/{path}"
        if self._is_local:
            Path(target).parent.mkdir(parents=True, exist_ok=True)
            with received.open("rb") as file:
                os.fsync(file.fileno())
            received.replace(target)
        else:
            self._files.put_file(str(received), target)

    def open(self, path: str) -> BinaryIO:
        """A kept file, to read from any place in it.

        Raises:
            FileNotFoundError: It is not there any more.
        """
        file: BinaryIO = self._files.open(f"{self._root}/{path}", "rb")
        return file


def open_store(settings: Settings) -> ArtifactStore:
    """The store the settings name."""
    folder = settings.data_dir.expanduser().absolute()
    return ArtifactStore(settings.artifact_url or f"file://{folder / 'artifacts'}", scratch=folder / "incoming")
