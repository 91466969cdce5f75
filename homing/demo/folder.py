"""Where the demo's files are: in a folder of the user's, or in a temporary one that goes when all went well."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from homing.demo.telling import Teller


@dataclass(slots=True)
class DemoFolder:
    """The folder of one run.

    Attributes:
        path: absolute.
        keep: whether it stays; a run that failed should be looked into.
    """

    path: Path
    keep: bool = True


@contextmanager
def open_folder(chosen: Path | None, *, tell: Teller) -> Iterator[DemoFolder]:
    """Give the chosen folder, or a temporary one, for as long as the block lasts."""
    if chosen is not None:
        path = chosen.expanduser().absolute()
        path.mkdir(parents=True, exist_ok=True)
        yield DemoFolder(path)
        return
    folder = DemoFolder(Path(tempfile.mkdtemp(prefix="homing-demo-")))
    try:
        yield folder
    except KeyboardInterrupt:
        folder.keep = False
        raise
    finally:
        if folder.keep:
            tell(f"database and logs are kept in {folder.path}")
        else:
            shutil.rmtree(folder.path, ignore_errors=True)
