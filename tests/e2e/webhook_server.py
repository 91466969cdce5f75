"""A small web process that takes webhooks in: ``python -m tests.e2e.webhook_server DATABASE_URL``; prints its port."""

from __future__ import annotations

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


def main() -> None:
    clock = FakeClock()
    world = a_world(Database.connect(sys.argv[1], clock=clock), clock)
    server = make_server("127.0.0.1", 0, world.app, threaded=True, request_handler=Quiet)
    print(server.port, flush=True)  # noqa: T201 - the test reads it
    server.serve_forever()


if __name__ == "__main__":
    main()
