"""The schemas of `GET /v1/event-types` as files: `python -m homing.event_schemas docs/reference/event-schemas`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from jobs.api.event_shapes import list_event_types


def schema_files() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each file."""
    for known in list_event_types():
        yield f"{known['type']}.json", json.dumps(known["schema"], indent=2, ensure_ascii=False) + "\n"


def write_files(folder: Path) -> None:
    """Write one file for each type, and leave no other."""
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob("*.json"):
        stale.unlink()
    for name, text in schema_files():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_files(Path(sys.argv[1]))
