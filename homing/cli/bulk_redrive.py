"""A redrive of many dead letters, begun and watched from a shell."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote

from homing.screen import Document
from jobs.ids import new_token

if TYPE_CHECKING:
    from homing.client.api import ApiClient

_LOOK_EVERY_S = 1.0


def redrive_many(
    client: ApiClient, body: Mapping[str, str], *, wait: bool, tell: Callable[[str], object] | None
) -> Document:
    """Begin a redrive and follow it to its end.

    Args:
        client: the API.
        body: filters and rate.
        wait: whether to stay; it goes on without.
        tell: is given a line for each step seen.

    Returns:
        The redrive as it was seen last.
    """
    begun = seen = client.begin_redrive(dict(body), key=f"cli-{new_token()}")
    say = tell or (lambda _line: None)
    for seen in _steps(client, begun, wait=wait):
        say(_line(seen))
    for reason, count in seen["reasons"].items():
        say(f"  {count} x {reason}")
    return seen


def _steps(client: ApiClient, document: Document, *, wait: bool) -> Iterator[Document]:
    """Yield the redrive each time it has come further."""
    path, pause, told = f"/v1/dead-letters/redrives/{quote(document['id'], safe='')}", threading.Event(), -1
    while True:
        has_ended = document["state"] != "running"
        if has_ended or document["done"] != told:
            told = document["done"]
            yield document
        if has_ended or not wait:
            return
        pause.wait(_LOOK_EVERY_S)
        document = client.get(path)


def _line(seen: Document) -> str:
    if not seen["total"]:
        return "no dead letters"
    counts = f"{seen['redriven']} redriven, {seen['noop']} with nothing to do, {seen['failed']} failed"
    line = f"{seen['id']}: {seen['done']} of {seen['total']} at {seen['rate']}: {counts}"
    return line if seen["state"] == "running" else f"{line}; {seen['state']}"
