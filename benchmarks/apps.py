"""What stands behind the server beside the product: the yardsticks, and the product's other door."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from flask import Flask, Response

from homing.composition import build_runtime
from homing.web import create_app
from webhooks.incoming.events import NewEvent, Stored
from webhooks.incoming.installation import build_intake
from webhooks.incoming.receiving.hot_path import wrap
from webhooks.incoming.receiving.receiver import Receiver

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

PLAIN_DOOR = "/flask"


def empty() -> WSGIApplication:
    """Reads the body and says 200, with nothing between: what the server itself costs."""

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
        start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", "2")])
        return [b"{}"]

    return answer


def bare() -> Flask:
    """A Flask view that reads the body and says 200."""
    from flask import request  # noqa: PLC0415

    app = Flask("bare")

    @app.post("/webhooks/<provider>")
    def receive(provider: str) -> Response:
        request.get_data()
        return Response(b'{"status":"accepted","event":"' + provider.encode() + b'"}', mimetype="application/json")

    return app


def verify_only() -> WSGIApplication:
    """The real receiver without a database: everything up to the commit, and nothing after it."""
    runtime = build_runtime()
    intake = build_intake(runtime)
    receiver = Receiver(
        runtime.providers,
        admission=intake.admission,
        committer=_Forgetful(),  # type: ignore[arg-type] # all that is asked of a committer here
        quarantine=intake.quarantine,
        clock=runtime.clock,
        max_bytes=runtime.settings.webhook_max_bytes,
    )
    return wrap(_nothing, receiver)


def both_doors() -> WSGIApplication:
    """The product as shipped; below ``/flask`` the same without its fast door, so that webhooks go through Flask."""
    app = create_app()
    fast = app.wsgi_app
    del app.wsgi_app  # the wrapper hangs on the instance; the class's own method is Flask's
    plain = app.wsgi_app

    def choose(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"].startswith(PLAIN_DOOR):
            environ["PATH_INFO"] = environ["PATH_INFO"].removeprefix(PLAIN_DOOR)
            return plain(environ, start_response)
        return fast(environ, start_response)

    return choose


class _Forgetful:
    """A committer that stores nothing."""

    def submit(self, event: NewEvent) -> Stored:
        return Stored("accepted", event.id, None, is_new=True)


def _nothing(_environ: Any, start_response: Any) -> Iterable[bytes]:
    start_response("404 Not Found", [("Content-Length", "0")])
    return []
