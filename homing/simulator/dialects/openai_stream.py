"""A response as OpenAI tells it while it is made: numbered events, the same however often it is listened to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping

from homing.simulator import stream_pages
from homing.simulator.dialects.openai_words import word_of
from homing.simulator.run import Run, Status
from homing.simulator.streams import Piece, pieces

Describe = Callable[[Run], Mapping[str, object]]

# Events that come before the first piece of text.
_BEFORE = ("response.created", "response.in_progress", "response.output_item.added", "response.content_part.added")


def first_piece_after(known: int) -> int:
    """How many pieces of text the one who knows the event of this number knows."""
    return max(0, known - len(_BEFORE) + 1)


def write(run: Run, told: Iterator[Piece | None], *, describe: Describe, known: int) -> Iterator[str]:
    """Tell the events after the known one.

    Args:
        run: whose output it is.
        told: its pieces, from after the last known one.
        describe: the response as it is now.
        known: the number of an event, from 0; -1 for none.
    """
    for number, name in enumerate(_BEFORE):
        if number > known:
            yield _event(run, name, number, **_said_before(run, name, describe))
    for piece in told:
        if piece is None:
            yield stream_pages.COMMENT
        else:
            number = len(_BEFORE) + piece.number - 1
            yield _event(run, "response.output_text.delta", number, delta=piece.text, logprobs=[], content_index=0)
    yield from _end(run, describe, known=known)


def _said_before(run: Run, name: str, describe: Describe) -> dict[str, object]:
    if name == "response.output_item.added":
        return {"item": _message(run, "in_progress", text=None)}
    if name == "response.content_part.added":
        return {"content_index": 0, "part": _part("")}
    return {"response": {**describe(run), "status": "in_progress", "output": []}}


def _end(run: Run, describe: Describe, *, known: int) -> Iterator[str]:
    text = "".join(pieces(run))
    number = len(_BEFORE) + len(pieces(run))
    ends: list[tuple[str, dict[str, object]]] = []
    if run.status is Status.SUCCEEDED:
        ends = [
            ("response.output_text.done", {"text": text, "logprobs": [], "content_index": 0}),
            ("response.content_part.done", {"content_index": 0, "part": _part(text)}),
            ("response.output_item.done", {"item": _message(run, "completed", text=text)}),
        ]
    ends.append((f"response.{word_of(run)}", {"response": describe(run)}))
    for offset, (name, fields) in enumerate(ends):
        if number + offset > known:
            yield _event(run, name, number + offset, **fields)


def _event(run: Run, name: str, number: int, **fields: object) -> str:
    about = {} if "response" in fields else {"item_id": f"msg-{run.id}", "output_index": 0}
    data = {"type": name, "sequence_number": number, **about, **fields}
    return stream_pages.event(name, json.dumps(data, ensure_ascii=False))


def _part(text: str) -> dict[str, object]:
    return {"type": "output_text", "text": text, "annotations": []}


def _message(run: Run, status: str, *, text: str | None) -> dict[str, object]:
    content = [] if text is None else [_part(text)]
    return {"id": f"msg-{run.id}", "type": "message", "role": "assistant", "status": status, "content": content}
