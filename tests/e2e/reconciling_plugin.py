"""A plugin with one handler of each kind, for the tests that start a worker."""

from __future__ import annotations

import os
from pathlib import Path

import sqlalchemy as sa

from homing import Event, on


@on("heartbeat.*", name="plain")
def tell(event: Event) -> None:
    """Appends the event to a file."""
    with Path(os.environ["TOLD"]).open("a", encoding="utf-8") as told:
        told.write(f"{event.type} {event.id}\n")


@on("heartbeat.*", transactional=True, name="transactional")
def count(event: Event, connection: sa.Connection) -> None:
    """Counts the event in a table of the user's own."""
    connection.execute(sa.text("INSERT INTO effects VALUES (:id)"), {"id": event.id})
