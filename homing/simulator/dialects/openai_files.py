"""The files of the `/openai` dialect: what clients upload, and what runs leave behind."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

from homing.simulator.models.llm_stream import continue_text
from jobs.clock import Clock
from jobs.ids import new_id

#: Oldest files leave first, so that a simulator left running does not grow for ever.
_KEPT = 1000
_ROW_TOKENS = 12


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file as the files endpoint knows it."""

    id: str
    name: str
    purpose: str
    content: bytes
    created_at: int

    def to_json(self) -> dict[str, object]:
        """As the files endpoint shows it."""
        return {
            "id": self.id,
            "object": "file",
            "bytes": len(self.content),
            "created_at": self.created_at,
            "filename": self.name,
            "purpose": self.purpose,
            "status": "processed",
        }


class Files:
    """Files by id."""

    def __init__(self, clock: Clock) -> None:
        """Build it empty."""
        self._clock = clock
        self._lock = threading.Lock()
        self._files: OrderedDict[str, StoredFile] = OrderedDict()

    def put(self, content: bytes, *, name: str, purpose: str, file_id: str | None = None) -> StoredFile:
        """Keep a file; one of a given id stays what it was."""
        now = self._clock.now()
        made = "file-" + new_id("f", at=now).removeprefix("f_")
        file = StoredFile(file_id or made, name, purpose, content, int(now.timestamp()))
        with self._lock:
            file = self._files.setdefault(file.id, file)
            while len(self._files) > _KEPT:
                self._files.popitem(last=False)
        return file

    def get(self, file_id: object) -> StoredFile | None:
        """Return a file that is still kept."""
        with self._lock:
            return self._files.get(file_id) if isinstance(file_id, str) else None


@dataclass(frozen=True, slots=True)
class Row:
    """One request of a batch."""

    custom_id: str
    prompt: str
    fails: bool


def read_rows(content: bytes) -> list[Row]:
    """The requests of a batch file; a line that is none of them is left out."""
    return [row for line in content.splitlines() if (row := _read_row(line)) is not None]


def _read_row(line: bytes) -> Row | None:
    try:
        value = json.loads(line)
        body = value["body"]
        prompt = body.get("input") or " ".join(str(message["content"]) for message in body.get("messages", []))
        return Row(str(value["custom_id"]), str(prompt).strip() or "home", bool(body.get("fail")))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def write_rows(rows: list[Row], *, failed: bool) -> bytes:
    """The output file of a batch, or its error file: one line for each request that belongs there."""
    lines = (_line(row) for row in rows if row.fails is failed)
    return "".join(f"{json.dumps(line)}\n" for line in lines).encode()


def _line(row: Row) -> dict[str, object]:
    if row.fails:
        body: dict[str, object] = {"error": {"code": "invalid_request", "message": "the request asked to fail"}}
        return {"custom_id": row.custom_id, "response": {"status_code": 400, "body": body}, "error": None}
    text = " ".join(continue_text(row.prompt, _ROW_TOKENS))
    body = {"object": "chat.completion", "choices": [{"message": {"role": "assistant", "content": text}}]}
    return {"custom_id": row.custom_id, "response": {"status_code": 200, "body": body}, "error": None}


def read_points(content: bytes) -> Iterator[list[float]]:
    """Something to learn from a training file: how long each of its lines is."""
    for number, line in enumerate(content.splitlines()):
        yield [float(number), float(len(line))]
