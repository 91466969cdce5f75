"""What a run has done so far, one JSON document a line, so that a run which was killed goes on where it was.

A death counts once an audit has followed it: what was done after the last audit is done again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Journal:
    """A file of entries: ``death``, ``trouble``, ``audit``, each with its ``database``."""

    path: Path

    def write(self, kind: str, **facts: Any) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            # The line break comes first: a run that was killed while it wrote has left half a line.
            file.write("\n" + json.dumps({"kind": kind, **facts}))
            file.flush()

    def audited(self) -> list[Entry]:
        """Every entry that an audit without violations has followed, audits included."""
        kept: list[Entry] = []
        waiting: list[Entry] = []
        for entry in self._entries():
            if entry["kind"] == "start":
                waiting = []
            else:
                waiting.append(entry)
            if entry["kind"] == "audit" and not entry["violations"]:
                kept += waiting
                waiting = []
        return kept

    def deaths(self, database: str) -> int:
        """How many processes have died in audited rounds."""
        return sum(deaths_of(entry) for entry in self.audited() if entry["database"] == database)

    def deaths_by_point(self, database: str) -> Counter[str]:
        found = (entry for entry in self.audited() if entry["kind"] == "death" and entry["database"] == database)
        return Counter(entry["point"] for entry in found if entry["point"])

    def troubles(self, database: str) -> Counter[str]:
        """How often each trouble was caused in audited rounds."""
        found = (entry for entry in self.audited() if entry["kind"] == "trouble" and entry["database"] == database)
        return Counter(entry["name"] for entry in found)

    def rounds(self, database: str) -> int:
        """How many rounds have been begun, audited or not: each has another seed."""
        return sum(1 for entry in self._entries() if entry["kind"] == "round" and entry["database"] == database)

    def starts(self) -> list[Entry]:
        """Every start, each with its commit and machine."""
        return [entry for entry in self._entries() if entry["kind"] == "start"]

    def _entries(self) -> Iterator[Entry]:
        if not self.path.exists():
            return
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                continue  # half a line, or none


def deaths_of(entry: Entry) -> int:
    """How many processes an entry stands for."""
    if entry["kind"] == "death":
        return 1
    return int(entry["deaths"]) if entry["kind"] == "trouble" else 0
