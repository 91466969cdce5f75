"""A small web process that takes webhooks in: ``python -m tests.e2e.webhook_server DATABASE_URL``; prints its port.

``create`` is the same for a server that calls a factory; it finds the database in ``HOMING_DATABASE_URL``.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from werkzeug.serving import WSGIRequestHandler, make_server

from jobs.clock import FakeClock
from jobs.storage.database import Database
from tests.integration.webhooks.incoming.world import a_world


class Quiet(WSGIRequestHandler):
    """Says nothing about requests."""

    def log(self, *_: Any) -> None:
        return


def create(url: str | None = None) -> Any:
    """The application, at the frozen instant of the vectors."""
    clock = FakeClock()
    return a_world(Database.connect(url or os.environ["HOMING_DATABASE_URL"], clock=clock), clock).app


def main() -> None:
    server = make_server("127.0.0.1", 0, create(sys.argv[1]), threaded=True, request_handler=Quiet)
    print(server.port, flush=True)  # noqa: T201 - the test reads it
    server.serve_forever()


if __name__ == "__main__":
    main()
