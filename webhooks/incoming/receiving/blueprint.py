"""The plain door: the same receiver as a Flask view, and the installation of both doors."""

from __future__ import annotations

from flask import Blueprint, Response, request

from webhooks.incoming.receiving.receiver import Receiver

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def receiving_blueprint(receiver: Receiver) -> Blueprint:
    """``/webhooks/<provider>[/<token>]``, with or without trailing slash, never a redirect.

    The receiver answers every method itself, and reads the body from the stream: ``request.form`` or
    ``request.data`` would eat the bytes the signature is over.
    """
    blueprint = Blueprint("webhooks", __name__)

    def receive(path: str) -> Response:
        del path  # the receiver reads it from the environment, as it does without Flask
        answer = receiver.answer(request.environ)
        return Response(answer.body, status=answer.status, headers=dict(answer.headers))

    blueprint.add_url_rule(
        "/webhooks/<path:path>",
        view_func=receive,
        methods=_METHODS,
        provide_automatic_options=False,
        merge_slashes=False,
    )
    return blueprint
