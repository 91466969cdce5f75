"""Webhooks going out: one delivery for each event and endpoint, signed anew and retried until it arrives."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flask import Flask

__all__ = ["install"]


def install(app: Flask) -> None:
    """Adds ``/v1/endpoints``, ``/v1/deliveries`` and ``/v1/signing-secret`` to a web process."""
    from webhooks.outgoing import api, deliveries_api  # noqa: PLC0415 - workers have no use for Flask

    for blueprint in (api.blueprint, api.secrets, deliveries_api.blueprint):
        app.register_blueprint(blueprint)
