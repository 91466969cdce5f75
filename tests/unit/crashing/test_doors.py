"""Each passage of a door is a point, and there are no other ways out."""

from __future__ import annotations

import ast
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from homing.broker import CeleryBroker
from jobs.net.exchange import BoundedConnection
from jobs.net.http import HttpClient
from jobs.services import work
from jobs.storage.database import Database, Transaction
from jobs.storage.dead_letters import dead_letter
from jobs.storage.letter_decisions import mark_redriven
from jobs.storage.metadata import metadata
from tests.crashing.control import Trigger
from tests.crashing.doors import wrap_call, wrap_requests, wrap_transactions

ROOT = Path(__file__).parents[3]
#: What can open a connection. Redis and Celery are doors of their own.
DIALERS = ("requests", "urllib3", "httpx", "aiohttp", "http.client", "socket", "ftplib", "smtplib", "urllib.request")
#: Of the processes of a fleet: not the simulator, the client and the commands.
FLEET = [*(ROOT / "jobs").rglob("*.py"), *(ROOT / "webhooks").rglob("*.py"), *(ROOT / "reconciler").rglob("*.py")]
FLEET += [*(ROOT / "homing").glob("*.py"), *(ROOT / "homing" / "health").glob("*.py")]
#: The encoding of a form.
HARMLESS = {"urllib3.filepost"}
# The last sets an option of sockets that listen.
MAY_DIAL = {"jobs/net/exchange.py", "jobs/net/http.py", "jobs/net/guarded.py", "homing/dead_peers.py"}


class Recorder(Trigger):
    """Remembers what was passed, and kills nobody."""

    def __init__(self) -> None:
        self.passed: list[str] = []

    def hit(self, name: str) -> None:
        self.passed.append(name)


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """The doors are wrapped for one test."""
    wrapped = ((Database, "write"), (Database, "insist"), (Transaction, "execute"), (CeleryBroker, "publish"))
    for owner, name in wrapped:
        monkeypatch.setattr(owner, name, getattr(owner, name))
    monkeypatch.setattr(BoundedConnection, "request", BoundedConnection.request)
    monkeypatch.setattr(BoundedConnection, "getresponse", BoundedConnection.getresponse)
    return Recorder()


@pytest.fixture
def server() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    listening = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listening.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{listening.server_port}/"
    listening.shutdown()
    thread.join()
    listening.server_close()


def _database(folder: Path) -> Database:
    return Database.connect(f"sqlite:///{folder / 'some.db'}")


def test_a_transaction_has_a_point_before_its_commit_and_one_after(recorder: Recorder, tmp_path: Path) -> None:
    wrap_transactions(recorder)
    database = _database(tmp_path)

    with database.write():
        recorder.hit("the work")
    database.insist(lambda tx: recorder.hit("the fact"))
    database.close()

    doors = [name.split(" ")[0] if "." in name else name for name in recorder.passed]
    assert doors == ["the work", "write.before", "write.after", "the fact", "insist.before", "insist.after"]


def test_a_transaction_that_fails_commits_nothing_and_passes_no_point(recorder: Recorder, tmp_path: Path) -> None:
    wrap_transactions(recorder)
    database = _database(tmp_path)

    with pytest.raises(ZeroDivisionError), database.write():
        raise ZeroDivisionError
    database.close()

    assert recorder.passed == []


def test_a_dead_letter_and_what_is_decided_on_it_have_points_of_their_own(recorder: Recorder, tmp_path: Path) -> None:
    wrap_transactions(recorder)
    database = _database(tmp_path)
    metadata.create_all(database.engine)

    with database.write() as tx:
        letter = dead_letter(tx, "handler", "7", reason="it failed", attempts=8, tenant=None)
    with database.write() as tx:
        mark_redriven(tx, letter, by="a person")
    database.close()

    written = ["write.before", "letter.before", "write.after", "letter.after"]
    decided = ["write.before", "decision.before", "write.after", "decision.after"]
    assert [name.split(" ")[0] for name in recorder.passed] == [*written, *decided]


def test_a_request_has_points_before_it_leaves_after_it_left_and_with_its_answer(
    recorder: Recorder, server: str
) -> None:
    wrap_requests(BoundedConnection, recorder)
    client = HttpClient()

    answer = client.request("GET", server)
    client.close()

    assert answer.status == 204
    assert [name.split(" ")[0] for name in recorder.passed] == ["request.before", "request.sent", "request.answered"]


def test_a_bell_has_points_on_both_sides_named_by_who_rings(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CeleryBroker, "publish", lambda *_: True)
    wrap_call(CeleryBroker, "publish", "publish", recorder)
    broker = CeleryBroker("redis://127.0.0.1:1/0")

    work.ring_relay(type("Parts", (), {"broker": broker}), True)

    assert recorder.passed == [
        "publish.before jobs.services.work:ring_relay",
        "publish.after jobs.services.work:ring_relay",
    ]


def test_nothing_but_the_bounded_connections_dials() -> None:
    dialing = {str(path.relative_to(ROOT)) for path in FLEET if _imports(path) - HARMLESS}

    assert dialing <= MAY_DIAL


def test_nothing_but_the_database_begins_a_transaction() -> None:
    begins = {
        str(path.relative_to(ROOT))
        for path in FLEET
        if "engine.connect(" in path.read_text() or "engine.begin(" in path.read_text()
    }

    assert begins == {"jobs/storage/database.py"}


def _imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []
        found |= {name for name in names if any(f"{name}.".startswith(f"{dialer}.") for dialer in DIALERS)}
    return found
