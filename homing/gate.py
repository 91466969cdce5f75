"""The gate: how many requests a web worker works on at a time, however many threads its server has.

A stream holds a thread of the server for as long as it is open, waiting; so the server gets hundreds. Work must not
spread over all of them: sixteen requests at work are as quick as sixteen hundred, and need no more connections.
"""

from __future__ import annotations

from collections.abc import Iterable
from queue import SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


def gated(wsgi_app: WSGIApplication, *, seats: int) -> WSGIApplication:
    """Lets so many requests at a time into an application.

    A seat is held until the application has answered; not while the answer's body is sent, which is where a stream
    spends its life.
    """
    # A queue of seats, because a semaphore is written in Python and every request would pay for it.
    free: SimpleQueue[int] = SimpleQueue()
    for seat in range(seats):
        free.put(seat)

    def front(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        seat = free.get()
        try:
            return wsgi_app(environ, start_response)
        finally:
            free.put(seat)

    return front
