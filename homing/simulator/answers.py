"""Answers of the provider, the broken ones included."""

from __future__ import annotations

import socket
from wsgiref.types import WSGIEnvironment

from flask import Response, jsonify

#: Seconds, as a Retry-After says them: short, because a demo waits for it.
RETRY_AFTER_S = 1

GATEWAY_PAGE = "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>"

#: Words for a run that no client knows.
UNKNOWN_WORDS = ("defrosting", "aborted", "EXPIRED")

SERVER_ERRORS = (500, 502, 503)


def error(status: int, code: str, message: str, **more: object) -> Response:
    """Return a failure in the provider's shape."""
    answer = jsonify(error={"code": code, "message": message}, **more)
    answer.status_code = status
    return answer


def with_status(answer: Response, status: int) -> Response:
    """Return the answer under another status."""
    answer.status_code = status
    return answer


def gateway_page() -> Response:
    """Return a proxy's page under status 200."""
    return Response(GATEWAY_PAGE, mimetype="text/html")


def cut_connection(environ: WSGIEnvironment) -> Response:
    """Close the caller's connection, so that no answer ever arrives.

    Raises:
        ConnectionAbortedError: there is no connection (a test client calls the app directly).
    """
    connection = environ.get("werkzeug.socket")
    if not isinstance(connection, socket.socket):
        raise ConnectionAbortedError("the answer is lost")
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # the caller hung up first, which is the same to it
    return Response(status=500)  # written into the closed connection, which the server takes as a lost caller
