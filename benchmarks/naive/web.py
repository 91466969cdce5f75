"""Its receiver: verify, store, publish one message, answer."""

from __future__ import annotations

from flask import Flask, Response, jsonify, request
from sqlalchemy.exc import IntegrityError

from benchmarks.naive.models import Event, new_session
from benchmarks.naive.worker import apply_event
from benchmarks.signing import verify


def create_app() -> Flask:
    """The application."""
    app = Flask("naive")

    @app.post("/webhooks/<provider>")
    def receive(provider: str) -> tuple[Response, int]:
        delivery_id, body = request.headers["webhook-id"], request.get_data()
        signed = delivery_id, request.headers["webhook-timestamp"], request.headers["webhook-signature"]
        if not verify(*signed, body=body):
            return jsonify(error="signature", provider=provider), 401
        with new_session() as session:
            event = Event(delivery_id=delivery_id, body=body.decode())
            session.add(event)
            try:
                session.commit()
            except IntegrityError:
                return jsonify(status="duplicate"), 200
            apply_event.apply_async((event.id,))
            return jsonify(status="accepted", event=event.id), 200

    return app
