from __future__ import annotations

import socket
from typing import Any

import pytest

from homing.web import create_app
from jobs.clock import FakeClock
from jobs.services.keys import Role
from jobs.storage.database import Database
from jobs.storage.dead_letters import dead_letter
from tests.factories import T, new_job
from tests.fakes.runtime import a_runtime
from tests.integration.api.conftest import TENANT, a_body, an_entry, login

#: The instruments that ask Redis, in bounded time; none of them serves a client's request.
INSTRUMENTS = ("/fleetz", "/metrics")


class Dialed(AssertionError):
    """A request handler opened a connection."""


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **_named: Any) -> None:
        raise Dialed(f"dialed {arguments}")

    for method in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, method, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.invariant("I17")
def test_no_route_dials_out(sqlite_url: str, clock: FakeClock, no_network: None) -> None:
    """The database is a file here, so that whatever is dialed is something a handler must not dial."""
    database = Database.connect(sqlite_url, clock=clock)
    app = create_app(a_runtime(database, providers={"renders": an_entry("renders")}))
    app.config["TESTING"] = app.config["PROPAGATE_EXCEPTIONS"] = True
    admin = login(app.test_client(), database, role=Role.ADMIN)
    waiting = new_job(database, review_reason="overdue", review_since=T)["id"]
    with database.write() as tx:
        letter = dead_letter(tx, "submit", waiting, reason="r", attempts=1, tenant=TENANT, job_id=waiting)
    names = {"job_id": waiting, "letter_id": letter, "name": "renders", "event_id": "evt_1"}
    bodies = {
        "/v1/jobs": a_body(),
        f"/v1/jobs/{waiting}/resolve": {"action": "acknowledge", "reason": "r"},
    }
    called = 0

    for rule in app.url_map.iter_rules():
        path = rule.rule
        for argument in rule.arguments:
            path = path.replace(f"<{argument}>", names.get(argument, "x"))
        for method in sorted(rule.methods or ()):
            if path.startswith(("/static", "/webhooks", *INSTRUMENTS)) or method not in ("GET", "POST"):
                continue
            answer = admin.get(path) if method == "GET" else admin.post(path, bodies.get(path))
            assert answer.status_code < 500, (method, path, answer.text)
            called += 1

    assert called > 20
    database.close()


def test_the_guard_of_this_test_guards(no_network: None) -> None:
    with pytest.raises(Dialed):
        socket.create_connection(("127.0.0.1", 9))
