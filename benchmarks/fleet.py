"""The fleet as it is shipped, over a database of the benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from benchmarks.processes import PRODUCT, Running, start, start_server, wait_for_log, wait_for_server
from benchmarks.stage import Stage

EVERYBODY = ("worker-events", "worker-io", "beat")


@dataclass(frozen=True, slots=True)
class Fleet:
    """Running processes."""

    address: str
    database_url: str
    processes: tuple[Running, ...]


@contextmanager
def fleet(
    stage: Stage, database_url: str, *, names: tuple[str, ...] = EVERYBODY, environ: Mapping[str, str] | None = None
) -> Iterator[Fleet]:
    """The web server and some others; everything answers when this yields.

    Args:
        stage: Where.
        database_url: Migrated.
        names: Of the processes beside the web server.
        environ: Instead of the stage's own.
    """
    settings = environ or stage.environ(database_url)
    with ExitStack() as stack:
        web, address = start_server(PRODUCT, settings)
        stack.callback(web.stop)
        others = [start(name, settings) for name in names]
        for running in others:
            stack.callback(running.stop)
        for running in others:
            wait_for_log(running, "beat: Starting" if running.name == "beat" else " ready.")
        wait_for_server(web, address)
        yield Fleet(address, database_url, (web, *others))
