"""The doors of the product, each wrapped once: whatever leaves a process leaves through one of them.

====================  ==============================================================================================
``write.before``      a transaction's work is done, and not committed (``insist.before``: one that must not be given up)
``write.after``       it is committed
``letter.before``     the same two of a transaction that writes a dead letter, ``decision``: that redrives or discards
                      one, ``redrive``: that moves a redrive of many on; each beside its ``write``
``request.before``    a request to somebody else is about to leave
``request.sent``      it has left; no answer was read
``request.answered``  its answer is here, and nobody has looked at it
``publish.before``    a bell is about to be rung, and ``publish.after``: it was
``redis.before``      a flag or a lock, and ``redis.after``
``store.before``      a file is about to be moved to its place, and ``store.after``: it is there
``answer.before``     our own answer is ready, and has not left
``task.begun``        a message was taken, and ``task.done``: its work is done, and it is not acknowledged
====================  ==============================================================================================

Reads are no doors: between a read and the next of these nothing can be lost that a death at the next would not lose.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import redis
from celery import signals

from homing.broker import CeleryBroker
from jobs.clock import SystemClock
from jobs.net.exchange import BoundedConnection, BoundedTlsConnection
from jobs.services.artifacts.store import ArtifactStore
from jobs.storage.database import Database, Transaction
from tests.crashing.control import Trigger
from tests.crashing.naming import caller, route_of

_kind = threading.local()
#: Who writes what to dead letters, and to redrives of many.
LETTER_DOORS = {
    "jobs.storage.dead_letters": "letter",
    "jobs.storage.letter_decisions": "decision",
    "jobs.storage.redrives": "redrive",
}


def wrap_all(trigger: Trigger) -> None:
    """Wraps every door of this process."""
    wrap_transactions(trigger)
    for connection in (BoundedConnection, BoundedTlsConnection):
        wrap_requests(connection, trigger)
    wrap_call(CeleryBroker, "publish", "publish", trigger)
    wrap_call(redis.Redis, "execute_command", "redis", trigger)
    wrap_call(ArtifactStore, "keep", "store", trigger)
    wrap_answers(trigger)
    watch_tasks(trigger)
    wrap_clock(trigger)


def wrap_transactions(trigger: Trigger) -> None:
    write, insist = Database.write, Database.insist

    @contextmanager
    def pointed_write(self: Database) -> Iterator[Any]:
        name, kind = caller(3), getattr(_kind, "name", "write")
        _kind.touched = set()
        with write(self) as tx:
            yield tx
            doors = [kind, *sorted(_kind.touched)]
            for door in doors:
                trigger.hit(f"{door}.before {name}")
        for door in doors:
            trigger.hit(f"{door}.after {name}")

    def pointed_insist(self: Database, *args: Any, **options: Any) -> Any:
        _kind.name = "insist"
        try:
            return insist(self, *args, **options)
        finally:
            del _kind.name

    _watch_letters()
    Database.write = pointed_write  # type: ignore[method-assign]
    Database.insist = pointed_insist  # type: ignore[method-assign]


def _watch_letters() -> None:
    """Notes which transactions write to dead letters: the same service writes them in the end, and not at first."""
    execute = Transaction.execute

    def watched(self: Transaction, statement: Any, parameters: Any = None) -> Any:
        door = LETTER_DOORS.get(str(sys._getframe(1).f_globals.get("__name__")))
        if door and statement.is_dml:
            touched: set[str] = getattr(_kind, "touched", set())
            touched.add(door)
        return execute(self, statement, parameters)

    Transaction.execute = watched  # type: ignore[method-assign]


def wrap_requests(connection: type[Any], trigger: Trigger) -> None:
    """The lowest place every HTTP request passes, whichever client makes it."""
    request, getresponse = connection.request, connection.getresponse

    def pointed_request(self: Any, *args: Any, **options: Any) -> None:
        name = caller()
        trigger.hit(f"request.before {name}")
        request(self, *args, **options)
        trigger.hit(f"request.sent {name}")

    def pointed_getresponse(self: Any) -> Any:
        response = getresponse(self)
        trigger.hit(f"request.answered {caller()}")
        return response

    connection.request = pointed_request
    connection.getresponse = pointed_getresponse


def wrap_call(owner: type[Any], method: str, door: str, trigger: Trigger) -> None:
    """A door with two points: before, and after it came back (by an error as well)."""
    original: Callable[..., Any] = getattr(owner, method)

    def pointed(self: Any, *args: Any, **options: Any) -> Any:
        name = caller()
        if name is None:
            return original(self, *args, **options)
        trigger.hit(f"{door}.before {name}")
        try:
            return original(self, *args, **options)
        finally:
            trigger.hit(f"{door}.after {name}")

    setattr(owner, method, pointed)


def wrap_answers(trigger: Trigger) -> None:
    """The outermost layer of the web application, which is being built while plugins are imported."""
    web = sys.modules.get("homing.web")
    if web is None:
        return
    gated = web.gated

    def pointed_gated(app: Any, **options: Any) -> Any:
        inner = gated(app, **options)

        def front(environ: dict[str, Any], start_response: Any) -> Any:
            body = inner(environ, start_response)
            trigger.hit(f"answer.before {route_of(environ['REQUEST_METHOD'], environ.get('PATH_INFO', ''))}")
            return body

        return front

    web.gated = pointed_gated  # type: ignore[attr-defined]


def watch_tasks(trigger: Trigger) -> None:
    def begun(task: Any = None, **_: Any) -> None:
        trigger.hit(f"task.begun {task.name}")

    def done(task: Any = None, **_: Any) -> None:
        trigger.hit(f"task.done {task.name}")

    signals.task_prerun.connect(begun, weak=False)
    signals.task_postrun.connect(done, weak=False)


def wrap_clock(trigger: Trigger) -> None:
    now = SystemClock.now

    def stepped(self: SystemClock) -> datetime:
        return now(self) + timedelta(seconds=trigger.clock_offset_s())

    SystemClock.now = stepped  # type: ignore[method-assign]
